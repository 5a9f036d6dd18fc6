// SPDX-License-Identifier: MIT
#include <perfmap/output_file.hpp>

#include "command_line.hpp"
#include "convert.hpp"
#include "output.hpp"

namespace perfmap::app {
namespace {

struct TidyOptions {
  std::vector<Source> sources;  ///< one
  SourceOptions opening;
  Overlap overlap = Overlap::last;
  std::string output = "-";
  bool in_place = false;
  bool force = false;
};

ExitCode run_tidy(const TidyOptions& options, const Console& console) {
  const Result<void> number = check_number(options.sources, 1, 1);
  if (!number) return console.fail(number.error());
  if (options.force && !options.in_place) return console.fail("--force requires --in-place");
  Opening opening;
  Result<std::vector<OpenedInput>> opened =
      open_inputs(options.sources.front(), options.opening, console);
  if (!opened) return console.fail(opened.error());
  if (options.in_place && opened->size() > 1) {
    const Source& source = options.sources.front();
    return console.fail((pid_of_source(source) != 0 ? "process " : "") + source.text +
                        " has a map and a jitdump: pass " + opened->front().input.name() +
                        " instead");
  }
  if (options.in_place && opened->front().was_compressed) {
    return console.fail(opened->front().input.name() +
                        " is compressed; write another file with -o");
  }
  Result<Map> map = make_map(*std::move(opened), options.opening, console, &opening);
  if (!map) return console.fail(map.error());
  if (options.in_place) {
    if (opening.kind != SourceKind::perf_map) {
      return console.fail(map->input().name() + " is " + with_article(opening.kind) +
                          ", not a perf map; write another file with -o");
    }
    if (map->ends_in_part()) {
      return console.fail("the last line of " + map->input().name() +
                          " is incomplete: a process is still writing it");
    }
    if (const auto why = objection_to_rewriting(map->input(), options.force)) {
      return console.fail(*why);
    }
  }
  Result<OutputFile> out =
      options.in_place ? OutputFile::replace(map->input()) : open_output(options.output);
  if (!out) return console.fail(out.error());
  Diagnostics problems(1);
  Index index = make_index(*std::move(map), options.overlap, problems, console);
  if (options.in_place) {
    if (const auto why = objection_to_emptying(index, problems)) return console.fail(*why);
  }
  return write_merged(index, problems, false, *out, console);
}

/// The output is always a perf map.
Result<void> check_suffix(TidyOptions& options, const Console& console) {
  std::string format = "perf-map";
  return choose_format("", format, options.output, kMapSuffixes, format, console);
}

}  // namespace

void declare_tidy(CommandOptions& command) {
  TidyOptions& options = command.runs(run_tidy, check_suffix);
  add_sources(command, options.sources,
              {.help = "A perf map, a jitdump or JSON: a path, '-' or a pid", .is_single = true});
  add_source_options(command, options.opening);
  const Option output = add_output(command, options.output);
  command.flag("--in-place", options.in_place, "Replace the map").excludes(output);
  command.flag("--force", options.force,
               "Replace the map even while a process has it open for writing");
  add_overlap(command, options.overlap, false);
}

}  // namespace perfmap::app
