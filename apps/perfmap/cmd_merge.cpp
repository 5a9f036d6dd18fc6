// SPDX-License-Identifier: MIT
#include <perfmap/json.hpp>
#include <perfmap/lint.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/report.hpp>
#include <perfmap/text.hpp>

#include "command_line.hpp"
#include "convert.hpp"
#include "output.hpp"

namespace perfmap::app {
namespace {

struct MergeOptions {
  std::vector<Source> sources;
  SourceOptions source;
  Overlap overlap = Overlap::last;
  std::string output = "-";
  std::string to;
  bool keep = false;
  bool check = false;
};

/// Prints each conflict as lint does. ExitCode::findings if there is one.
ExitCode check(const std::vector<Map>& maps, const Console& console) {
  const Step step(console, "checking " + counted(maps.size(), "map"), !console.out().is_terminal());
  std::uint64_t conflicts = 0;
  Diagnostics problems(1);
  for_each_conflict(maps, problems, [&](const RangeFinding& finding) {
    const Map& map = maps[finding.here.map()];
    const std::uint64_t line = map.line_number(finding.here.offset());
    console.out().write(
        to_gcc({finding.rule, {finding.here.offset(), line, 1}, message_of(finding, maps), 0},
               map.input().name()));
    ++conflicts;
  });
  if (!is_whole(console, maps)) return ExitCode::failed;
  note_skipped(console, problems);
  return conflicts == 0 ? ExitCode::ok : ExitCode::findings;
}

ExitCode keep(const std::vector<Map>& maps, OutputFile& out, const Console& console) {
  const Step step(console, "writing", out);
  write_concatenated(maps, out);
  if (!is_whole(console, maps)) return ExitCode::failed;
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  note_unfinished(console, maps);
  return ExitCode::ok;
}

/// --check and --keep need lines, so all sources must be maps. Pipes are checked later.
Result<void> check_lines(const MergeOptions& options) {
  for (const Source& source : options.sources) {
    if (pid_of_source(source) != 0) continue;
    const Result<Input> input = Input::open(source.text, {.regular_only = true});
    const SourceKind kind = input ? detect_kind(input->text()) : SourceKind::perf_map;
    if (kind != SourceKind::jitdump && kind != SourceKind::pypylog) continue;
    return Failure(Error::unsupported(
        source.text + " is " + with_article(kind) + ", which --check and --keep do not support" +
        (kind == SourceKind::jitdump ? " ('perfmap lint' checks jitdumps)" : "")));
  }
  return {};
}

ExitCode merge_to_jitdump(const MergeOptions& options, const Console& console) {
  if (options.overlap != Overlap::last)
    return console.fail("--overlap applies to maps; jitdumps have times");
  SourceOptions opening = options.source;
  opening.dump_pid = pid_of_dump(options.output);
  Result<std::vector<OpenedInput>> opened = open_inputs(options.sources, opening, console);
  if (!opened) return console.fail(opened.error());
  const Result<std::vector<Jitdump>> dumps =
      dumps_of(*std::move(opened), options.source, options.output, console);
  if (!dumps) return console.fail(dumps.error());
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("cannot write a jitdump to a terminal: name a file with -o");
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  return write_merged_dumps(*dumps, *out, console);
}

ExitCode run_merge(const MergeOptions& options, const Console& console) {
  const Result<void> number = check_number(options.sources, 1, SIZE_MAX);
  if (!number) return console.fail(number.error());
  if (options.to == "jitdump") return merge_to_jitdump(options, console);
  if (options.check || options.keep) {
    const Result<void> lines = check_lines(options);
    if (!lines) return console.fail(lines.error());
  }
  Result<std::vector<Map>> maps = open_maps(options.sources, options.source, console);
  if (!maps) return console.fail(maps.error());
  if (options.check) return check(*maps, console);
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  if (options.keep) return keep(*maps, *out, console);
  Diagnostics problems(kMaxProblemsInJson);
  Index index = make_index(*std::move(maps), options.overlap, problems, console);
  return write_merged(index, problems, options.to == "json", *out, console);
}

constexpr std::span kSuffixes = std::span(kMapSuffixes).first<3>();

Result<void> choose_target(MergeOptions& options, const Console& console) {
  if (options.check && !options.to.empty()) {
    return invalid("--check writes nothing, so --to has no effect");
  }
  if (options.check) return {};
  if (!options.keep) {
    return choose_format("--to", options.to, options.output, kSuffixes, "perf-map", console);
  }
  options.to = "perf-map";
  return choose_format("", options.to, options.output, kMapSuffixes, "perf-map", console);
}

}  // namespace

void declare_merge(CommandOptions& command) {
  MergeOptions& options = command.runs(run_merge, choose_target);
  add_sources(command, options.sources, {.help = "Maps, the oldest first: paths, '-' or pids"});
  add_source_options(command, options.source);
  const Option output = add_output(command, options.output);
  const Option overlap = add_overlap(command, options.overlap, false);
  const Option keep =
      command.flag("--keep", options.keep, "Concatenate the lines unchanged").excludes(overlap);
  command.flag("--check", options.check, "Write nothing; print each conflict")
      .excludes(keep)
      .excludes(output);
  add_output_format(command, "--to", options.to, {"perf-map", "jitdump", "json"}, kSuffixes,
                    "perf-map")
      .excludes(keep);
}

}  // namespace perfmap::app
