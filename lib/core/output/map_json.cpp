#include "perfmap/map_json.hpp"

#include <charconv>
#include <optional>

#include "formats/map_entries.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kSchema = "perfmap.map/1";

/// N of a path whose last component is perf-N.map.
std::optional<std::uint64_t> pid_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  if (!path.starts_with("perf-") || !path.ends_with(".map")) return std::nullopt;
  const std::string_view digits = path.substr(5, path.size() - 9);
  std::uint64_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return pid;
}

void write_source(JsonWriter& json, const Input& input, const JsonOrigin& origin) {
  json.key("source");
  json.begin_object();
  json.key("path");
  json.string(input.name());
  json.key("kind");
  json.string(origin.kind);
  json.key("pid");
  const auto pid = pid_of(input.name());
  if (pid) {
    json.number(*pid);
  } else {
    json.null();
  }
  json.key("bytes");
  json.number(origin.bytes.value_or(input.text().size()));
  json.end_object();
}

void write_entry(JsonWriter& json, const AddressRange& range, std::string_view name,
                 std::uint64_t line) {
  json.begin_object();
  json.key("start");
  json.address(range.begin);
  json.key("size");
  json.number(range.size);
  json.name_members(name);
  json.key("line");
  json.number(line);
  json.end_object();
}

template <class Visit>
void for_each_segment(const Index& index, Visit visit) {
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    const Segment segment = index.segment(i);
    visit(segment.range, index.entry(segment.owner).name, index.line_number(segment.owner));
  }
}

void begin_document(JsonWriter& json, const Input& input, const JsonOrigin& origin) {
  json.begin_object();
  json.key("schema");
  json.string(kSchema);
  write_source(json, input, origin);
  json.key("entries");
  json.begin_array();
}

void end_document(JsonWriter& json, const Diagnostics& problems) {
  json.end_array();
  json.key("problems");
  json.begin_array();
  for (const Diagnostic& problem : problems.items()) write_problem(json, problem);
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace

void write_problem(JsonWriter& json, const Diagnostic& problem) {
  json.begin_object();
  json.key("rule");
  json.string(problem.rule->id);
  json.key("line");
  json.number(problem.where.line);
  json.key("column");
  json.number(problem.where.column);
  json.key("offset");
  json.number(problem.where.offset);
  json.key("message");
  json.string(problem.message);
  json.end_object();
}

void write_map_json(const Map& map, OutputFile& out, Diagnostics& problems,
                    const JsonOrigin& origin) {
  JsonWriter json(out);
  begin_document(json, map.input(), origin);
  for_each_entry(map, problems, [&](const Entry& entry, std::uint64_t line) {
    write_entry(json, entry.range, entry.name, line);
  });
  end_document(json, problems);
}

void write_map_jsonl(const Map& map, OutputFile& out, Diagnostics& problems) {
  JsonWriter json(out);
  for_each_entry(map, problems, [&](const Entry& entry, std::uint64_t line) {
    write_entry(json, entry.range, entry.name, line);
    json.newline();
  });
}

void write_effective_json(const Index& index, OutputFile& out, const Diagnostics& problems,
                          const JsonOrigin& origin) {
  JsonWriter json(out);
  begin_document(json, index.maps().front().input(), origin);
  for_each_segment(index, [&](const AddressRange& range, std::string_view name,
                              std::uint64_t line) { write_entry(json, range, name, line); });
  end_document(json, problems);
}

void write_effective_jsonl(const Index& index, OutputFile& out) {
  JsonWriter json(out);
  for_each_segment(index,
                   [&](const AddressRange& range, std::string_view name, std::uint64_t line) {
                     write_entry(json, range, name, line);
                     json.newline();
                   });
}

}  // namespace perfmap
