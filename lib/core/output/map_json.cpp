#include "perfmap/map_json.hpp"

#include <charconv>
#include <optional>

#include "formats/map_entries.hpp"
#include "output/json_source.hpp"

namespace perfmap {
namespace {

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
  write_source_json(json, input, origin.kind, pid_of(input.name()),
                    origin.bytes.value_or(input.text().size()));
}

/// `source` is the number of the entry's map where there are several.
void write_entry(JsonWriter& json, const AddressRange& range, std::string_view name,
                 std::uint64_t line, std::optional<std::size_t> source = {}) {
  json.begin_object();
  json.key("start");
  json.address(range.begin);
  json.key("size");
  json.number(range.size);
  json.name_members(name);
  if (source) {
    json.key("source");
    json.number(*source);
  }
  json.key("line");
  json.number(line);
  json.end_object();
}

void write_problem_of(JsonWriter& json, const Diagnostic& problem,
                      std::optional<std::uint32_t> source) {
  json.begin_object();
  json.key("rule");
  json.string(problem.rule->id);
  if (source) {
    json.key("source");
    json.number(*source);
  }
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

template <class Visit>
void for_each_segment(const Index& index, Visit visit) {
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    const Segment segment = index.segment(i);
    const auto entry = index.entry(segment.owner);
    if (!entry) return;  // the file was cut off: nobody will want the rest
    visit(segment, entry->name, index.line_number(segment.owner));
  }
}

/// One map is the "source"; several are "sources", which entries and problems name by number.
void begin_document(JsonWriter& json, std::span<const Map> maps, const JsonOrigin& origin) {
  json.begin_object();
  json.key("schema");
  json.string(kMapSchema);
  if (maps.size() == 1) {
    json.key("source");
    write_source(json, maps.front().input(), origin);
  } else {
    json.key("sources");
    json.begin_array();
    for (const Map& map : maps) write_source(json, map.input(), {});
    json.end_array();
  }
  json.key("entries");
  json.begin_array();
}

void end_document(JsonWriter& json, const Diagnostics& problems, bool several) {
  json.end_array();
  json.key("problems");
  json.begin_array();
  for (const Diagnostic& problem : problems.items()) {
    write_problem_of(json, problem, several ? std::optional(problem.map) : std::nullopt);
  }
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace

void write_source_json(JsonWriter& json, const Input& input, std::string_view kind,
                       std::optional<std::uint64_t> pid, std::uint64_t bytes) {
  json.begin_object();
  json.key("path");
  json.string(input.name());
  json.key("kind");
  json.string(kind);
  json.key("pid");
  if (pid) {
    json.number(*pid);
  } else {
    json.null();
  }
  json.key("bytes");
  json.number(bytes);
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
