#include <perfmap/info.hpp>
#include <perfmap/json_writer.hpp>

#include "command_line.hpp"
#include "dump_info_text.hpp"
#include "readable_name.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::string source;
  SourceOptions opening;
  bool demangle = true;
  std::string by;
  std::string format;
};

std::string padded(std::uint64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.insert(0, text.size() < width ? width - text.size() : 0, ' ');
}

void print_text(const Console& console, const Map& map, const Opening& opening,
                const MapInfo& info) {
  OutputFile& out = console.out();
  const auto row = [&](std::string_view key, const std::string& value) {
    std::string line(key);
    line.resize(12, ' ');
    out.write(line + value + "\n");
  };
  row("source", map.input().name());
  row("kind", std::string(to_string(opening.kind)));
  row("bytes", std::to_string(opening.bytes));
  row("entries", std::to_string(info.entries));
  row("bad lines", std::to_string(info.lost_lines));
  row("names", std::to_string(info.names));
  if (info.entries != 0) row("addresses", hex_text(info.first) + "-" + hex_text(info.last));
  row("covered",
      std::to_string(info.covered) + " bytes, " + std::to_string(info.claimed) + " claimed");
  row("runtime",
      info.runtime == Runtime::unknown ? "unknown" : std::string(to_string(info.runtime)));
}

void print_json(const Console& console, const Map& map, const Opening& opening,
                const MapInfo& info) {
  JsonWriter json(console.out());
  const auto number = [&](std::string_view key, std::uint64_t value) {
    json.key(key);
    json.number(value);
  };
  json.begin_object();
  json.key("schema");
  json.string("perfmap.info/1");
  json.key("source");
  json.string(map.input().name());
  json.key("kind");
  json.string(kind_id(opening.kind));
  number("bytes", opening.bytes);
  number("entries", info.entries);
  number("bad_lines", info.lost_lines);
  number("names", info.names);
  json.key("first");
  json.address(info.first);
  json.key("last");
  json.address(info.last);
  number("covered", info.covered);
  number("claimed", info.claimed);
  json.key("runtime");
  if (info.runtime == Runtime::unknown) {
    json.null();
  } else {
    json.string(to_string(info.runtime));
  }
  json.end_object();
  json.newline();
}

void print_groups(const Console& console, const Options& options,
                  const std::vector<InfoGroup>& groups, bool as_json) {
  OutputFile& out = console.out();
  if (!as_json) {
    for (const InfoGroup& group : groups) {
      out.write(padded(group.bytes, 12) + " " + padded(group.entries, 8) + "  " +
                (group.key.empty() ? "-" : printable(readable_name(group.key, options.demangle))) +
                "\n");
    }
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.key("schema");
  json.string("perfmap.info/1");
  json.key("by");
  json.string(options.by);
  json.key("groups");
  json.begin_array();
  for (const InfoGroup& group : groups) {
    json.begin_object();
    json.text_members("key", group.key);
    json.key("entries");
    json.number(group.entries);
    json.key("bytes");
    json.number(group.bytes);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.newline();
}

std::vector<InfoGroup> groups_of(const Map& map, GroupBy by, Diagnostics& problems,
                                 const Console& console) {
  const Step step(console, "counting");
  return group_entries(map, by, problems);
}

MapInfo info_of(Index& index, const Diagnostics& problems, const Console& console) {
  const Step step(console, "counting");
  index.compact();
  return map_info(index, problems);
}

ExitCode print_groups_of(const Options& options, std::vector<OpenedInput> opened, bool as_json,
                         const Console& console) {
  Result<Map> map = map_of_inputs(std::move(opened), options.opening);
  if (!map) return console.fail(map.error());
  Diagnostics problems(1);
  const GroupBy by = options.by == "name"     ? GroupBy::name
                     : options.by == "prefix" ? GroupBy::prefix
                                              : GroupBy::tier;
  print_groups(console, options, groups_of(*map, by, problems, console), as_json);
  if (!is_whole(console, {&*map, 1})) return ExitCode::failed;
  note_skipped(console, problems);
  return ExitCode::ok;
}

ExitCode print_info_of(const Options& options, OpenedInput opened, bool as_json,
                       const Console& console) {
  if (opened.kind == SourceKind::jitdump) {
    const SourceKind kind = written_kind(opened);
    return print_dump_info(dump_of(std::move(opened), options.opening), kind, as_json, console);
  }
  Opening opening;
  Result<Map> map = map_of(std::move(opened), options.opening, &opening);
  if (!map) return console.fail(map.error());
  Diagnostics problems(1);
  Index index = make_index(*std::move(map), Overlap::last, problems, console);
  const MapInfo info = info_of(index, problems, console);
  (as_json ? print_json : print_text)(console, index.maps().front(), opening, info);
  if (!is_whole(console, index.maps())) return ExitCode::failed;
  note_skipped(console, problems);
  return ExitCode::ok;
}

ExitCode run(const Options& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_inputs({options.source}, options.opening, console);
  if (!opened) return console.fail(opened.error());
  const bool as_json = options.format == "json";
  if (!options.by.empty()) return print_groups_of(options, *std::move(opened), as_json, console);
  ExitCode code = ExitCode::ok;
  for (OpenedInput& one : *opened) {
    // Of a process with a map and a jitdump each is told about.
    if (&one != &opened->front() && !as_json) console.out().write("\n");
    const ExitCode own = print_info_of(options, std::move(one), as_json, console);
    code = std::max(code, own);
  }
  return code;
}

}  // namespace

void declare_info(CommandOptions& command) {
  Options& options = command.runs(run);
  command.positional("source", options.source, kSource, "The map: a path, '-' or a pid").required();
  add_source_options(command, options.opening);
  command.value("--by", options.by, "KEY", "Bytes and entries by name, prefix or tier")
      .one_of({"name", "prefix", "tier"});
  add_no_demangle(command, options.demangle);
  add_format(command, options.format, {"text", "json"});
}

}  // namespace perfmap::app
