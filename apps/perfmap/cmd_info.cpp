// SPDX-License-Identifier: MIT
#include <perfmap/image_list.hpp>
#include <perfmap/info.hpp>
#include <perfmap/json.hpp>
#include <perfmap/text.hpp>

#include "command_line.hpp"
#include "console.hpp"
#include "perfmap/text.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

constexpr std::uint32_t kKinds = 5;

std::string time_text(std::uint64_t time, bool ticks) {
  return ticks ? std::to_string(time) : seconds_text(time);
}

std::string order_text(const JitdumpHeader& header) {
  return header.order == std::endian::little ? "little-endian" : "big-endian";
}

std::string machine_text(const JitdumpHeader& header) {
  const std::uint32_t machine = header.elf_mach;
  const char* const name = machine == 62    ? " (x86-64)"
                           : machine == 183 ? " (aarch64)"
                           : machine == 3   ? " (i386)"
                           : machine == 40  ? " (arm)"
                           : machine == 243 ? " (riscv)"
                           : machine == 0   ? " (not given)"
                                            : "";
  return std::to_string(machine) + name + ", " + order_text(header);
}

void print_dump_text(OutputFile& out, const Jitdump& dump, SourceKind kind, const DumpInfo& info) {
  const auto row = [&](std::string_view key, const std::string& value) {
    std::string line(key);
    line.resize(16, ' ');
    out.write(line + value + "\n");
  };
  row("source", one_line(dump.input().name(), out.is_terminal()));
  row("kind", std::string(to_string(kind)));
  row("bytes", std::to_string(info.bytes));
  // Loops of a log are a dump with a header that perfmap made.
  if (dump.header() && kind == SourceKind::jitdump) {
    row("pid", std::to_string(dump.header()->pid));
    row("machine", machine_text(*dump.header()));
  }
  for (std::uint32_t id = 0; id < kKinds; ++id) {
    row(std::string(to_string(static_cast<JitRecordKind>(id))), std::to_string(info.records[id]));
  }
  row("unknown", std::to_string(info.unknown_records));
  row("lost bytes", std::to_string(info.lost_bytes));
  if (info.bad_records != 0) row("malformed", counted(info.bad_records, "record"));
  row("names", std::to_string(info.names));
  if (info.first_time) {
    const bool ticks = dump.has_tsc_times();
    row("times", time_text(*info.first_time, ticks) + "-" + time_text(info.last_time, ticks) +
                     (ticks ? " ticks" : " s"));
  }
  row("code", std::to_string(info.code_bytes) +
                  " bytes (sum of all sizes: " + std::to_string(info.claimed) + ")");
  if (info.covered != 0)
    row("at the end", to_hex(info.first) + "-" + to_hex(info.last) + ", " +
                          std::to_string(info.covered) + " bytes covered");
  row("runtime",
      info.runtime == Runtime::unknown ? "unknown" : std::string(to_string(info.runtime)));
}

/// The members that the info of maps and of dumps share.
template <class Info>
void print_extent(JsonWriter& json, const Info& info) {
  json.address("first", info.first);
  json.address("last", info.last);
  json.member("covered", info.covered);
  json.member("claimed", info.claimed);
  json.key("runtime");
  if (info.runtime == Runtime::unknown) {
    json.null();
  } else {
    json.string(to_string(info.runtime));
  }
}

void print_header(JsonWriter& json, const Jitdump& dump) {
  if (!dump.header()) return;
  json.member("pid", dump.header()->pid);
  json.member("machine", dump.header()->elf_mach);
  json.member("order", dump.header()->order == std::endian::little ? "little" : "big");
}

void print_records(JsonWriter& json, const DumpInfo& info) {
  json.begin_object("records");
  for (std::uint32_t id = 0; id < kKinds; ++id) {
    json.member(to_string(static_cast<JitRecordKind>(id)), info.records[id]);
  }
  json.member("unknown", info.unknown_records);
  json.end_object();
}

void print_dump_json(OutputFile& out, const Jitdump& dump, SourceKind kind, const DumpInfo& info) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.info/1");
  json.member("source", dump.input().name());
  json.member("kind", kind_id(kind));
  json.member("bytes", info.bytes);
  if (kind == SourceKind::jitdump) print_header(json, dump);
  print_records(json, info);
  json.member("lost_bytes", info.lost_bytes);
  json.member("bad_records", info.bad_records);
  json.member("names", info.names);
  if (info.first_time) {
    json.member("first_time", time_text(*info.first_time, dump.has_tsc_times()));
    json.member("last_time", time_text(info.last_time, dump.has_tsc_times()));
  }
  json.member("code_bytes", info.code_bytes);
  print_extent(json, info);
  json.end_object();
  json.newline();
}

ExitCode print_dump_info(OpenedInput opened, const SourceOptions& opening, bool as_json,
                         const Console& console) {
  const SourceKind kind = opened.written_kind();
  const bool was_made = opened.made_from.has_value();
  const std::uint64_t written = opened.written_bytes;
  Jitdump dump = dump_of(std::move(opened), opening);
  const Input input = dump.input();
  Diagnostics problems(1);
  DumpInfo info;
  const Timeline timeline(std::move(dump), problems);
  {
    const Step step(console, "counting " + input.name());
    info = dump_info(timeline);
  }
  if (was_made) info.bytes = written;
  (as_json ? print_dump_json : print_dump_text)(console.out(), timeline.dump(), kind, info);
  if (!is_whole(console, input)) return ExitCode::failed;
  note_skipped_records(console, problems);
  return ExitCode::ok;
}

ExitCode print_list_info(OpenedInput opened, bool as_json, const Console& console) {
  const ImageList list(std::move(opened.input));
  const ImageListInfo info = image_list_info(list);
  OutputFile& out = console.out();
  if (as_json) {
    JsonWriter json(out);
    json.begin_object();
    json.member("schema", "perfmap.info/1");
    json.member("source", list.input().name());
    json.member("kind", kind_id(opened.kind));
    json.member("bytes", list.text().size());
    json.member("images", info.images);
    json.member("precompiled", info.precompiled);
    json.member("bad_lines", info.bad_lines);
    json.end_object();
    json.newline();
  } else {
    const auto row = [&](std::string_view key, const std::string& value) {
      std::string line(key);
      line.resize(12, ' ');
      out.write(line + value + "\n");
    };
    row("source", one_line(list.input().name(), out.is_terminal()));
    row("kind", std::string(to_string(opened.kind)));
    row("bytes", std::to_string(list.text().size()));
    row("images", std::to_string(info.images));
    row("precompiled", std::to_string(info.precompiled));
    if (info.precompiled != 0) row("bases", to_hex(info.first) + "-" + to_hex(info.last));
    row("malformed", counted(info.bad_lines, "line"));
  }
  return is_whole(console, list.input()) ? ExitCode::ok : ExitCode::failed;
}

struct InfoOptions {
  std::vector<Source> sources;  ///< one
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
  row("source", one_line(map.input().name(), out.is_terminal()));
  row("kind", std::string(to_string(opening.kind)));
  row("bytes", std::to_string(opening.bytes));
  row("entries", std::to_string(info.entries));
  row("malformed", counted(info.lost_lines, "line"));
  row("names", std::to_string(info.names));
  if (info.entries != 0) row("addresses", to_hex(info.first) + "-" + to_hex(info.last));
  row("covered", std::to_string(info.covered) +
                     " bytes (sum of all sizes: " + std::to_string(info.claimed) + ")");
  row("runtime",
      info.runtime == Runtime::unknown ? "unknown" : std::string(to_string(info.runtime)));
}

void print_json(const Console& console, const Map& map, const Opening& opening,
                const MapInfo& info) {
  JsonWriter json(console.out());
  json.begin_object();
  json.member("schema", "perfmap.info/1");
  json.member("source", map.input().name());
  json.member("kind", kind_id(opening.kind));
  json.member("bytes", opening.bytes);
  json.member("entries", info.entries);
  json.member("bad_lines", info.lost_lines);
  json.member("names", info.names);
  print_extent(json, info);
  json.end_object();
  json.newline();
}

void print_groups(const Console& console, const InfoOptions& options,
                  const std::vector<InfoGroup>& groups, bool as_json) {
  OutputFile& out = console.out();
  if (!as_json) {
    for (const InfoGroup& group : groups) {
      out.write(padded(group.bytes, 12) + " " + padded(group.entries, 8) + "  " +
                (group.key.empty()
                     ? "-"
                     : one_line(readable_name(group.key, options.demangle), out.is_terminal())) +
                "\n");
    }
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.info/1");
  json.member("by", options.by);
  json.list("groups", groups, [&](const InfoGroup& group) {
    json.begin_object();
    json.text_members("key", group.key);
    json.member("entries", group.entries);
    json.member("bytes", group.bytes);
    json.end_object();
  });
  json.end_object();
  json.newline();
}

std::vector<InfoGroup> groups_of(const Map& map, GroupBy by, Diagnostics& problems,
                                 const Console& console) {
  const Step step(console, "counting " + map.input().name());
  return group_entries(map, by, problems);
}

MapInfo info_of(Index& index, const Diagnostics& problems, const Console& console) {
  const Step step(console, "counting");
  index.compact();
  return map_info(index, problems);
}

ExitCode print_groups_of(const InfoOptions& options, std::vector<OpenedInput> opened, bool as_json,
                         const Console& console) {
  Result<Map> map = make_distinct_map(std::move(opened), options.opening, console);
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

ExitCode print_info_of(const InfoOptions& options, OpenedInput opened, bool as_json,
                       const Console& console) {
  if (opened.kind == SourceKind::image_list) {
    return print_list_info(std::move(opened), as_json, console);
  }
  if (opened.kind == SourceKind::jitdump) {
    return print_dump_info(std::move(opened), options.opening, as_json, console);
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

ExitCode run_info(const InfoOptions& options, const Console& console) {
  const Result<void> number = check_number(options.sources, 1, 1);
  if (!number) return console.fail(number.error());
  SourceOptions opening = options.opening;
  opening.takes_images = options.by.empty();
  Result<std::vector<OpenedInput>> opened = open_inputs(options.sources.front(), opening, console);
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
  InfoOptions& options = command.runs(run_info);
  add_sources(command, options.sources,
              {.help = "A perf map, a jitdump or JSON: a path, '-' or a pid",
               .is_single = true,
               .recorded = SourceWords::Recorded::each_file});
  add_source_options(command, options.opening);
  command.value("--by", options.by, "KEY", "Print bytes and entries by name, prefix or tier")
      .one_of({"name", "prefix", "tier"});
  add_no_demangle(command, options.demangle);
  add_format(command, options.format, {"text", "json"});
}

}  // namespace perfmap::app
