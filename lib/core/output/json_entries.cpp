#include "output/json_entries.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/base64.hpp"
#include "output/json_position.hpp"
#include "output/json_source.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostQuoted = 40;

/// The part of nlohmann's message that says what is wrong. What it goes on to quote of the input
/// may have any length.
std::string syntax_problem(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return "a number beyond what a double holds";
  what.remove_prefix(dash + 3);
  return "this is not JSON: " + std::string(what.substr(0, what.find("; last read: ")));
}

/// Takes SAX events and hands out each entry: an object with a "start" on the top level, or one in
/// the array "entries" of the top-level object. Anything deeper or elsewhere is passed over.
///
/// The events are nlohmann's interface; answering false ends the parse.
class EntryEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EntryEvents(const std::function<void(JsonEntry)>& take) : take_(take) {}

  /// Why the parse ended early.
  std::string problem;
  /// Entries handed out, or "entries" seen: this was our kind of document.
  bool ours = false;

  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_float(double, const std::string&) override { return other_value(); }
  bool number_integer(std::int64_t) override { return other_value(); }
  bool binary(nlohmann::json::binary_t&) override { return other_value(); }
  bool number_unsigned(std::uint64_t value) override {
    if (at_member("start")) return start_ = value, true;
    if (at_member("size")) return size_ = value, true;
    return other_value();
  }
  bool string(std::string& value) override {
    if (at_member("start")) return hexadecimal(value, start_);
    if (at_member("size")) return hexadecimal(value, size_);
    if (at_member("name")) return name_ = std::move(value), true;
    if (at_member("name_bytes")) {
      bytes_ = from_base64(value);
      return bytes_ || fail("\"name_bytes\" is not base64");
    }
    // A later version may mean something else by the same members.
    if (depth_ == 1 && key_ == "schema" && value != kMapSchema) {
      return fail("the schema is not " + std::string(kMapSchema));
    }
    return among_entries() ? no_entry() : true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1 || depth_ == entry_depth_) key_ = name;
    return true;
  }
  bool start_object(std::size_t) override {
    if (!among_entries() && !other_value()) return false;
    ++depth_;
    if (depth_ == 1 || (in_entries_ && depth_ == 3)) begin_entry();
    return true;
  }
  bool end_object() override {
    const bool ends_entry = depth_ == entry_depth_;
    --depth_;
    return !ends_entry || end_entry();
  }
  bool start_array(std::size_t) override {
    if (!other_value()) return false;
    ++depth_;
    if (depth_ == 2 && entry_depth_ == 1 && key_ == "entries") in_entries_ = ours = true;
    return true;
  }
  bool end_array() override {
    if (depth_ == 2) in_entries_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& why) override {
    return fail(syntax_problem(why.what()));
  }

 private:
  bool at_member(std::string_view name) const { return depth_ == entry_depth_ && key_ == name; }
  bool among_entries() const { return in_entries_ && depth_ == 2; }
  bool fail(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool no_entry() { return fail("expected an entry: an object"); }

  /// A value that no member of an entry has.
  bool other_value() {
    if (among_entries()) return no_entry();
    for (const char* const member : {"start", "size"}) {
      if (at_member(member)) {
        return fail("\"" + std::string(member) + "\" is not an unsigned 64-bit number");
      }
    }
    for (const char* const member : {"name", "name_bytes"}) {
      if (at_member(member)) return fail("\"" + std::string(member) + "\" is not a string");
    }
    return true;
  }
  bool hexadecimal(const std::string& text, std::optional<std::uint64_t>& value) {
    value = parse_hex(text);
    return value || fail("'" + text.substr(0, kMostQuoted) + "' is not a hexadecimal number");
  }
  void begin_entry() {
    entry_depth_ = depth_;
    key_.clear();
    start_.reset();
    size_.reset();
    name_.reset();
    bytes_.reset();
  }
  bool end_entry() {
    const bool top = entry_depth_ == 1;
    entry_depth_ = 1;  // within the array, only the next object opens an entry again
    if (top && !start_ && !size_) return true;  // a document, not an entry
    if (!start_ || !size_ || !(name_ || bytes_)) {
      return fail("an entry wants \"start\", \"size\" and \"name\"");
    }
    ours = true;
    take_(JsonEntry{*start_, *size_, bytes_ ? *std::move(bytes_) : *std::move(name_)});
    start_.reset();
    size_.reset();
    return true;
  }

  const std::function<void(JsonEntry)>& take_;
  std::size_t depth_ = 0;
  std::size_t entry_depth_ = 0;
  bool in_entries_ = false;
  std::string key_;
  std::optional<std::uint64_t> start_;
  std::optional<std::uint64_t> size_;
  std::optional<std::string> name_;
  std::optional<std::string> bytes_;
};

}  // namespace

Result<void> for_each_json_entry(std::string_view json,
                                 const std::function<void(JsonEntry)>& take) {
  EntryEvents events(take);
  std::size_t taken = 0;
  const bool good =
      nlohmann::json::sax_parse(CountingIterator(json.data(), &taken),
                                CountingIterator(json.data() + json.size(), &taken), &events);
  if (good && events.ours) return {};
  if (good) return Failure({Errc::bad_format, "JSON, but no map of ours", 0, {0, 1, 1}});
  const Location where = locate(json, taken == 0 ? 0 : taken - 1);
  return Failure({Errc::bad_format, std::move(events.problem), 0, where});
}

}  // namespace perfmap
