// SPDX-License-Identifier: MIT
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "map/map_scan.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/json.hpp"
#include "perfmap/types.hpp"
#include "report/json_fields.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kMaxQuoted = 40;

/// The description in nlohmann's error message. The quoted input after it may have any length.
std::string syntax_problem(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return "a number that does not fit a double";
  what.remove_prefix(dash + 3);
  return "this is not JSON: " + std::string(what.substr(0, what.find("; last read: ")));
}

/// Handles SAX events and passes on each entry: a top-level object with a "start", or an object in
/// the array "entries" of the top-level object. Everything else is skipped.
///
/// The functions are nlohmann's interface; returning false ends the parse.
class EntryEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EntryEvents(const std::function<void(JsonEntry)>& take) : take_(take) {}

  /// Why parsing ended early.
  std::string problem;
  /// Entries or "entries" were found: the document has our format.
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
    // A later schema version may use the same members with another meaning.
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

  /// A value of a type that no member of an entry has.
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
    return value || fail("'" + text.substr(0, kMaxQuoted) + "' is not a hexadecimal number");
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
    entry_depth_ = 1;  // inside the array, only another object starts an entry
    if (top && !start_ && !size_) return true;  // a document without entries
    if (!start_ || !size_ || !(name_ || bytes_)) {
      return fail("an entry needs \"start\", \"size\" and \"name\"");
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

/// Parses the single JSON value `json` as a stream and passes on its entries: the value itself, or
/// those in its "entries". Fails with bad_format if it is neither; `where` gives the position.
/// Holds only one entry, and one bit for each level of nesting.
Result<void> for_each_json_entry(std::string_view json,
                                 const std::function<void(JsonEntry)>& take) {
  EntryEvents events(take);
  std::size_t taken = 0;
  const bool good =
      nlohmann::json::sax_parse(CountingIterator(json.data(), &taken),
                                CountingIterator(json.data() + json.size(), &taken), &events);
  if (good && events.ours) return {};
  if (good)
    return Failure(Error::bad_format("JSON, but not a map in perfmap's format").at({0, 1, 1}));
  const Location where = locate(json, taken == 0 ? 0 : taken - 1);
  return Failure(Error::bad_format(std::move(events.problem)).at(where));
}

/// The line of `text` that starts at `offset`; text before it is not counted as a line.
std::string_view line_at(std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(offset);
  return rest.substr(0, rest.find('\n'));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// JSON Lines: the first non-blank line is a complete value, and more text follows.
bool is_json_lines(std::string_view json) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return true;
  const std::string_view line = line_at(json, first);
  if (is_blank(json.substr(first + line.size()))) return false;
  return nlohmann::json::accept(line.begin(), line.end());
}

Result<void> parse_lines(std::string_view json, const std::function<void(const JsonEntry&)>& take) {
  std::uint64_t number = 1;
  for (std::size_t offset = 0; offset < json.size(); ++number) {
    const std::string_view line = line_at(json, offset);
    if (!is_blank(line)) {
      Result<void> read = for_each_json_entry(line, take);
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

void write_source(JsonWriter& json, const Input& input, const JsonOrigin& origin) {
  write_source_json(json, input, origin.kind, kMapName.pid_in(input.name()),
                    origin.bytes.value_or(input.text().size()));
}

/// `source` is the number of the entry's map if there are several.
void write_entry(JsonWriter& json, const AddressRange& range, std::string_view name,
                 std::uint64_t line, std::optional<std::size_t> source = {}) {
  json.begin_object();
  json.address("start", range.begin);
  json.member("size", range.size);
  json.name_members(name);
  if (source) json.member("source", *source);
  json.member("line", line);
  json.end_object();
}

void write_problem_of(JsonWriter& json, const Diagnostic& problem,
                      std::optional<std::uint32_t> source) {
  json.begin_object();
  json.member("rule", problem.rule->id);
  if (source) json.member("source", *source);
  json.member("line", problem.where.line);
  json.member("column", problem.where.column);
  json.member("offset", problem.where.offset);
  json.member("message", problem.message);
  json.end_object();
}

template <class Visit>
void for_each_segment(const Index& index, Visit visit) {
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    const Segment segment = index.segment(i);
    const auto entry = index.entry(segment.owner);
    if (!entry) return;  // the file was truncated: the rest is useless
    visit(segment, entry->name, index.line_number(segment.owner));
  }
}

/// One map is written as "source"; several as "sources", and entries and problems refer to them by
/// number.
void begin_document(JsonWriter& json, std::span<const Map> maps, const JsonOrigin& origin) {
  json.begin_object();
  json.member("schema", kMapSchema);
  if (maps.size() == 1) {
    json.key("source");
    write_source(json, maps.front().input(), origin);
  } else {
    json.begin_array("sources");
    for (const Map& map : maps) write_source(json, map.input(), {});
    json.end_array();
  }
  json.begin_array("entries");
}

void end_document(JsonWriter& json, const Diagnostics& problems, bool several) {
  json.end_array();
  json.list("problems", problems.items(), [&](const Diagnostic& problem) {
    write_problem_of(json, problem, several ? std::optional(problem.map) : std::nullopt);
  });
  json.end_object();
  json.newline();
}

}  // namespace

Result<JsonEntry> entry_from_json(std::string_view line) {
  std::optional<JsonEntry> found;
  std::uint64_t count = 0;
  const Result<void> read = for_each_json_entry(line, [&](JsonEntry entry) {
    found = std::move(entry);
    ++count;
  });
  if (!read) return failure(read);
  if (count != 1) return Failure(Error::bad_format("expected one entry").at({0, 1, 1}));
  return *std::move(found);
}

Result<MapText> map_text_from_json(std::string_view json) {
  MapText map;
  const auto take = [&map](const JsonEntry& entry) {
    append_entry(map, entry.start, entry.size, entry.name);
  };
  const Result<void> read =
      is_json_lines(json) ? parse_lines(json, take) : for_each_json_entry(json, take);
  if (!read) return failure(read);
  return map;
}

void write_source_json(JsonWriter& json, const Input& input, std::string_view kind,
                       std::optional<std::uint64_t> pid, std::uint64_t bytes) {
  json.begin_object();
  json.member("path", input.name());
  json.member("kind", kind);
  json.key("pid");
  if (pid) {
    json.number(*pid);
  } else {
    json.null();
  }
  json.member("bytes", bytes);
  json.end_object();
}

void write_problem(JsonWriter& json, const Diagnostic& problem) {
  write_problem_of(json, problem, std::nullopt);
}

void write_map_line_json(JsonWriter& json, std::string_view line, const Entry& entry,
                         std::uint64_t number) {
  write_entry(json, {entry.range.begin, written_size(line, entry)}, entry.name, number);
}

void write_map_json(const Map& map, OutputFile& out, Diagnostics& problems,
                    const JsonOrigin& origin) {
  JsonWriter json(out);
  begin_document(json, {&map, 1}, origin);
  for_each_entry(map, problems, [&](const Entry& entry, std::uint64_t line) {
    write_entry(json, {entry.range.begin, map.written_size(entry)}, entry.name, line);
  });
  end_document(json, problems, false);
}

void write_map_jsonl(const Map& map, OutputFile& out, Diagnostics& problems) {
  JsonWriter json(out);
  for_each_entry(map, problems, [&](const Entry& entry, std::uint64_t line) {
    write_entry(json, {entry.range.begin, map.written_size(entry)}, entry.name, line);
    json.newline();
  });
}

void write_effective_json(const Index& index, OutputFile& out, const Diagnostics& problems,
                          const JsonOrigin& origin) {
  JsonWriter json(out);
  const bool several = index.maps().size() != 1;
  begin_document(json, index.maps(), origin);
  for_each_segment(index, [&](const Segment& segment, std::string_view name, std::uint64_t line) {
    write_entry(json, segment.range, name, line,
                several ? std::optional(segment.owner.map()) : std::nullopt);
  });
  end_document(json, problems, several);
}

void write_effective_jsonl(const Index& index, OutputFile& out) {
  JsonWriter json(out);
  for_each_segment(index, [&](const Segment& segment, std::string_view name, std::uint64_t line) {
    write_entry(json, segment.range, name, line);
    json.newline();
  });
}

}  // namespace perfmap
