#include <algorithm>

#include "command_line.hpp"
#include "resolve_options.hpp"

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

std::string check_address(const std::string& text) {
  return text == "-" || parse_hex(text) ? "" : "'" + text + "' is not a hexadecimal address";
}

}  // namespace

void declare_resolve(CommandOptions& command) {
  ResolveOptions& options = command.runs(run);
  command
      .positional("address", options.addresses, "TEXT:HEX",
                  "Addresses in hexadecimal, with 0x or without; '-': on stdin, one a line, "
                  "perhaps with a time")
      .check(check_address);
  // Their order counts, whichever option each comes from.
  const auto add = [&](const char* names, Source::As as, const char* type, const char* help) {
    std::vector<Source>& sources = options.sources;
    const auto take = [&sources, as](const std::string& text) { sources.push_back({text, as}); };
    return command.values(names, take, type, help).in_order();
  };
  add("-p,--pid", Source::As::pid, "PID", "A process: its ELF files, its map and its jitdumps")
      .check(check_pid);
  add("-m,--map", Source::As::path, kFile, "A perf map file, such as /tmp/perf-42.map");
  add("-j,--jitdump", Source::As::dump, kFile, "A jitdump, such as /tmp/jit-42.dump");
  add("-s,--source", Source::As::any, kSource,
      "Any source: a path, '-' or a pid; of several the later wins");
  add_source_options(command, options.source);
  add_overlap(command, options.overlap, true);
  add_time(command, options.time);
  command.flag("--lines", options.lines,
               "Print source lines, where a jitdump or debug information has them");
  command.flag("--inlines", options.inlines, "Print the functions that were inlined there");
  command.flag("--no-demangle", options.no_demangle, "Print mangled names as files have them");
  add_format(command, options.format, {"text", "json", "jsonl"});
  command.flag("--perf-script", options.perf_script,
               "Name the unresolved JIT frames of 'perf script' text on stdin");
  command.value("--map-dir", options.source.map_dir, "DIR",
                "Where perf-PID.map and jit-PID.dump of processes are");
  command.value("--symfs", options.symfs, "DIR",
                "Where the ELF files of processes are, by their paths");
  command.flag("--debuginfod", options.debuginfod,
               "Ask the servers of DEBUGINFOD_URLS for debug files that are not here");
  command.flag("--strict", options.strict, "Exit with 1 when an address stays unknown");
}

}  // namespace perfmap::app
