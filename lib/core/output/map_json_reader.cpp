#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/base64.hpp"
#include "base/hex.hpp"
#include "perfmap/map_json.hpp"
#include "perfmap/written_name.hpp"

namespace perfmap {
namespace {

/// Takes SAX events and hands out each entry: an object with a "start" on the top level, or one in
/// the array "entries" of the top-level object. Anything deeper or elsewhere is passed over.
///
/// The events are nlohmann's interface; answering false ends the parse.
template <class Take>
class EntryEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EntryEvents(Take take) : take_(std::move(take)) {}

  /// Why the parse ended early.
  std::string problem;
  /// Entries handed out, or "entries" seen: this was our kind of document.
  bool ours = false;

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_float(double, const std::string&) override { return wrong_number(); }
  bool number_integer(std::int64_t) override { return wrong_number(); }
  bool binary(nlohmann::json::binary_t&) override { return scalar(); }
  bool number_unsigned(std::uint64_t value) override {
    if (at_member("start")) start_ = value;
    if (at_member("size")) size_ = value;
    return true;
  }
  bool string(std::string& value) override {
    if (at_member("start")) return hexadecimal(value, start_);
    if (at_member("size")) return hexadecimal(value, size_);
    if (at_member("name")) name_ = std::move(value);
    if (at_member("name_bytes")) {
      bytes_ = from_base64(value);
      if (!bytes_) return fail("\"name_bytes\" is not base64");
    }
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1 || depth_ == entry_depth_) key_ = name;
    return true;
  }
  bool start_object(std::size_t) override {
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
    ++depth_;
    if (depth_ == 2 && entry_depth_ == 1 && key_ == "entries") in_entries_ = ours = true;
    return true;
  }
  bool end_array() override {
    if (depth_ == 2) in_entries_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return fail("this is not JSON");
  }

 private:
  bool scalar() const { return true; }
  bool at_member(std::string_view name) const { return depth_ == entry_depth_ && key_ == name; }
  bool fail(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool wrong_number() {
    if (at_member("start")) return fail("\"start\" is not an unsigned 64-bit number");
    if (at_member("size")) return fail("\"size\" is not an unsigned 64-bit number");
    return true;
  }
  bool hexadecimal(const std::string& text, std::optional<std::uint64_t>& value) {
    value = parse_hex(text);
    return value || fail("'" + text + "' is not a hexadecimal number");
  }
  void begin_entry() {
    entry_depth_ = depth_;
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

  Take take_;
  std::size_t depth_ = 0;
  std::size_t entry_depth_ = 0;
  bool in_entries_ = false;
  std::string key_;
  std::optional<std::uint64_t> start_;
  std::optional<std::uint64_t> size_;
  std::optional<std::string> name_;
  std::optional<std::string> bytes_;
};

/// `offset` into `text` as line and column.
Location locate(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {offset, lines + 1, offset - line_start + 1};
}

/// Counts what the parser has taken, as its events do not say where they are. The parser may be one
/// byte ahead.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  std::size_t* count_;
};

/// Parses one JSON value, which is all of `text`, and hands out its entries.
template <class Take>
Result<void> parse(std::string_view text, Take take) {
  EntryEvents<Take> events(std::move(take));
  std::size_t taken = 0;
  const bool good =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &taken),
                                CountingIterator(text.data() + text.size(), &taken), &events);
  if (good && events.ours) return {};
  if (good) return Failure({Errc::bad_format, "JSON, but no map of ours", 0, {0, 1, 1}});
  const Location where = locate(text, taken == 0 ? 0 : taken - 1);
  return Failure({Errc::bad_format, std::move(events.problem), 0, where});
}

/// Whether a perf map gives this name back as it is.
bool fits_a_map(std::string_view name) noexcept {
  return !name.empty() && name[0] != ' ' && name[0] != '\t' &&
         name.find('\n') == std::string_view::npos && name != "\r";
}

void append_entry(MapText& map, const JsonEntry& entry) {
  char numbers[40];
  char* at = write_hex(numbers, entry.start);
  *at++ = ' ';
  at = write_hex(at, entry.size);
  *at++ = ' ';
  map.text.append(numbers, at);
  if (fits_a_map(entry.name)) {
    map.text += entry.name;
    if (entry.name.back() == '\r') map.text += '\r';  // readers take one off
  } else {
    append_written_name(map.text, entry.name);
    ++map.changed_names;
  }
  map.text += '\n';
  ++map.entries;
}

/// The line of `text` that starts at `offset`, with what comes before it on no line of its own.
std::string_view line_at(std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(offset);
  return rest.substr(0, rest.find('\n'));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// JSON lines: the first line with something on it is a whole value, and more comes behind it.
bool is_json_lines(std::string_view json) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return true;
  const std::string_view line = line_at(json, first);
  if (is_blank(json.substr(first + line.size()))) return false;
  return nlohmann::json::accept(line.begin(), line.end());
}

Result<void> parse_lines(std::string_view json, MapText& map) {
  std::uint64_t number = 1;
  for (std::size_t offset = 0; offset < json.size(); ++number) {
    const std::string_view line = line_at(json, offset);
    if (!is_blank(line)) {
      Result<void> read = parse(line, [&](const JsonEntry& entry) { append_entry(map, entry); });
      if (!read) {
        read.error().where.line = number;
        read.error().where.offset += offset;
        return read;
      }
    }
    offset += line.size() + 1;
  }
  return {};
}

}  // namespace

Result<JsonEntry> entry_from_json(std::string_view line) {
  std::optional<JsonEntry> found;
  const Result<void> read = parse(line, [&](JsonEntry entry) { found = std::move(entry); });
  if (!read) return Failure(read.error());
  if (!found) return Failure({Errc::bad_format, "expected one entry", 0, {0, 1, 1}});
  return *std::move(found);
}

Result<MapText> map_text_from_json(std::string_view json) {
  MapText map;
  const Result<void> read =
      is_json_lines(json) ? parse_lines(json, map)
                          : parse(json, [&](const JsonEntry& entry) { append_entry(map, entry); });
  if (!read) return Failure(read.error());
  return map;
}

}  // namespace perfmap
