#include <CLI/CLI.hpp>
#include <algorithm>

#include "options.hpp"
#include "resolve_options.hpp"
#include "time_option.hpp"

namespace perfmap::app {
namespace {

ExitCode run(const ResolveOptions& options, const Console& console) {
  if (options.perf_script) {
    if (!options.addresses.empty()) return console.fail("--perf-script takes no addresses");
    if (options.format != "text") return console.fail("--perf-script prints text");
    if (options.lines || options.inlines) {
      return console.fail("--perf-script leaves source lines and inlined frames to perf");
    }
    if (options.time != Timeline::kEnd) return console.fail("--perf-script has times of its own");
    return resolve_script(options, console);
  }
  if (options.addresses.empty()) return console.fail("expected an address, or '-'");
  if (options.sources.empty())
    return console.fail("expected a source: --map, --jitdump, --pid or -s");
  const auto dashes = std::count(options.addresses.begin(), options.addresses.end(), "-");
  if (dashes == 0) return resolve_arguments(options, console);
  if (options.addresses.size() == 1) return resolve_stream(options, console);
  return console.fail("expected addresses or '-', not both");
}

std::string is_address(const std::string& text) {
  return text == "-" || parse_hex(text) ? "" : "'" + text + "' is not a hexadecimal address";
}

/// An option that may come several times, and whose place among its like counts.
CLI::Option* add_ranked(CLI::App& command, const std::string& names, Source::As as,
                        std::vector<Source>& sources, const std::string& help) {
  const auto add = [as, &sources](const std::vector<std::string>& values) {
    for (const std::string& value : values) sources.push_back({value, as});
  };
  return command.add_option_function<std::vector<std::string>>(names, add, help)
      ->allow_extra_args(false)
      ->trigger_on_parse();
}

void add_directory(CLI::App& command, const std::string& name, std::string& value,
                   const std::string& help) {
  command.add_option(name, value, help)
      ->type_name("DIR")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace

void declare_resolve(CLI::App& command, Action& action) {
  const auto options = std::make_shared<ResolveOptions>();
  command
      .add_option(
          "address", options->addresses,
          "Addresses in hexadecimal, with 0x or without; '-': on stdin, one a line, perhaps with a "
          "time")
      ->check(CLI::Validator(is_address, "HEX"));
  add_ranked(command, "-p,--pid", Source::As::pid, options->sources,
             "A process: its ELF files, its map and its jitdumps")
      ->check(is_pid())
      ->type_name("PID");
  add_ranked(command, "-m,--map", Source::As::path, options->sources,
             "A perf map file, such as /tmp/perf-42.map")
      ->type_name(kFile);
  add_ranked(command, "-j,--jitdump", Source::As::dump, options->sources,
             "A jitdump, such as /tmp/jit-42.dump")
      ->type_name(kFile);
  add_ranked(command, "-s,--source", Source::As::any, options->sources,
             "Any source: a path, '-' or a pid; of several the later wins")
      ->type_name(kSource);
  add_source_options(command, options->source);
  add_overlap(command, options->overlap, true);
  add_time(command, options->time);
  command.add_flag("--lines", options->lines,
                   "Print source lines, where a jitdump or debug information has them");
  command.add_flag("--inlines", options->inlines, "Print the functions that were inlined there");
  command.add_flag("--no-demangle", options->no_demangle, "Print mangled names as files have them");
  add_format(command, options->format, {"text", "json", "jsonl"});
  command.add_flag("--perf-script", options->perf_script,
                   "Name the unresolved JIT frames of 'perf script' text on stdin");
  add_directory(command, "--map-dir", options->source.map_dir,
                "Where perf-PID.map and jit-PID.dump of processes are");
  add_directory(command, "--symfs", options->symfs,
                "Where the ELF files of processes are, by their paths");
  command.add_flag("--debuginfod", options->debuginfod,
                   "Ask the servers of DEBUGINFOD_URLS for debug files that are not here");
  command.add_flag("--strict", options->strict, "Exit with 1 when an address stays unknown");
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app
