#include "convert_dump.hpp"

#include <algorithm>
#include <perfmap/dump_merge.hpp>
#include <perfmap/jitdump_json.hpp>
#include <perfmap/map_json.hpp>

#include "portable.hpp"

namespace perfmap::app {
namespace {

std::string counted(std::uint64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void say_records(const Console& console, const Diagnostics& problems, const std::string& name) {
  for (const Diagnostic& problem : problems.items()) {
    console.line(name + ":+0x" + hex_text(problem.where.offset) + ": " + problem.message + " [" +
                 std::string(problem.rule->id) + "]");
  }
}

ExitCode commit(OutputFile& out, const Input& input, const Console& console) {
  if (!is_whole(console, input)) return ExitCode::failed;
  const Result<void> written = out.commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

/// N of PREFIX N SUFFIX; 0 of other names.
std::uint32_t pid_of_name(const std::string& path, std::string_view prefix,
                          std::string_view suffix) {
  std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return 0;
  name.remove_prefix(prefix.size());
  name.remove_suffix(std::min(name.size(), suffix.size()));
  return static_cast<std::uint32_t>(pid_of_source({std::string(name), Source::As::pid}));
}

/// perf goes by the name of the dump; a map may be called after its process, too.
std::uint32_t pid_of_map(const std::string& map, const std::string& output) {
  const std::uint32_t pid = pid_of_dump(output);
  return pid != 0 ? pid : pid_of_name(map, "perf-", ".map");
}

Result<Jitdump> dump_of_entries(const Map& map, const std::string& output, const Console& console) {
  Diagnostics problems(1);
  Result<DumpBytes> dump = dump_of_map(map, pid_of_map(map.input().name(), output), problems);
  if (!dump) return Failure(std::move(dump.error()));
  note_skipped(console, problems);
  note_without_code(console, dump->without_code);
  console.note("a map knows no times: its entries are there from time 0 on");
  return Jitdump(Input::from_text(std::move(dump->bytes), map.input().name()));
}

}  // namespace

std::uint32_t pid_of_dump(const std::string& path) { return pid_of_name(path, "jit-", ".dump"); }

void note_without_code(const Console& console, std::uint64_t count) {
  if (count == 0) return;
  console.note("zeros stand for the code of " + counted(count, "function", "functions") +
               ", which nobody knows");
}

ExitCode convert_dump_to_json(const ConvertOptions& options, OpenedInput opened,
                              const Console& console) {
  Jitdump dump = dump_of(std::move(opened), options.opening);
  const Result<void> comparable = check_time(dump, options.time);
  if (!comparable) return console.fail(comparable.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  const Step step(console, "writing", *out);
  const Input input = dump.input();
  const bool lines = options.to == "jsonl";
  Diagnostics problems(lines ? kMostProblemsSaid : kMostProblemsInJson);
  if (options.effective) {
    const Timeline timeline(std::move(dump), problems);
    if (lines) {
      write_timeline_jsonl(timeline, options.time, *out);
    } else {
      write_timeline_json(timeline, options.time, *out, problems);
    }
  } else {
    (lines ? write_dump_jsonl : write_dump_json)(dump, *out, problems, options.code);
  }
  const ExitCode code = commit(*out, input, console);
  if (code != ExitCode::ok) return code;
  if (lines) say_records(console, problems, input.name());
  note_skipped_records(console, problems);
  return code;
}

Result<std::vector<Jitdump>> dumps_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                                      const std::string& output, const Console& console) {
  std::vector<Jitdump> dumps;
  for (OpenedInput& one : opened) {
    note_without_code(console, one.without_code);
    if (one.made_from == SourceKind::pypylog) {
      console.note("the ticks of " + one.input.name() +
                   " are no times of a jitdump, and become 0; 'perfmap pypylog' converts them");
    }
    if (one.kind == SourceKind::jitdump) {
      dumps.push_back(dump_of(std::move(one), options));
      continue;
    }
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return Failure(std::move(map.error()));
    Result<Jitdump> dump = dump_of_entries(*map, output, console);
    if (!dump) return Failure(std::move(dump.error()));
    dumps.push_back(*std::move(dump));
  }
  return dumps;
}

ExitCode write_merged_dumps(const std::vector<Jitdump>& dumps, OutputFile& out,
                            const Console& console) {
  const Step step(console, "writing", out);
  Diagnostics problems(1);
  const Result<DumpMergeStats> stats = merge_dumps(dumps, out, problems);
  if (!stats) return console.fail(stats.error());
  for (const Jitdump& dump : dumps) {
    if (!is_whole(console, dump.input())) return ExitCode::failed;
  }
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  if (stats->several_pids)
    console.note("the dumps are of several processes: the first one's pid counts");
  if (stats->lost_moves != 0) {
    console.note("left out " + counted(stats->lost_moves, "move", "moves") +
                 " of what was not there");
  }
  if (stats->other_records != 0) {
    console.note("left out " + counted(stats->other_records, "record", "records") +
                 " of other kinds");
  }
  note_skipped_records(console, problems);
  return ExitCode::ok;
}

ExitCode convert_to_jitdump(const ConvertOptions& options, std::vector<OpenedInput> opened,
                            const Console& console) {
  const bool as_it_was = opened.size() == 1 && opened.front().made_from;
  Result<std::vector<Jitdump>> dumps =
      dumps_of(std::move(opened), options.opening, options.output, console);
  if (!dumps) return console.fail(dumps.error());
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("a jitdump is nothing for a terminal: name a file with -o");
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  if (!as_it_was) return write_merged_dumps(*dumps, *out, console);
  out->write(dumps->front().bytes());
  return commit(*out, dumps->front().input(), console);
}

}  // namespace perfmap::app
