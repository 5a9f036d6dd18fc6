#include <algorithm>
#include <charconv>
#include <perfmap/seconds.hpp>
#include <thread>

#include "command_line.hpp"
#include "readable_name.hpp"
#include "stacks_options.hpp"

namespace perfmap::app {
namespace {

/// A number of seconds with at least so many decimals.
std::string with_decimals(std::string seconds, std::size_t count) {
  std::size_t point = seconds.find('.');
  if (point == std::string::npos) {
    point = seconds.size();
    seconds += '.';
  }
  return seconds.append(count - std::min(count, seconds.size() - point - 1), '0');
}

/// FROM,TO: either may be missing. perf prints microseconds, the rest cut: a sample that was
/// printed at FROM or at TO is in the span. TO stands for the last nanosecond that is printed like
/// that.
bool parse_span(const std::string& text, std::uint64_t& from, std::uint64_t& to) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return false;
  const std::string first = text.substr(0, comma);
  const std::string last = text.substr(comma + 1);
  constexpr std::size_t kMicroseconds = 6;
  constexpr std::size_t kNanoseconds = 9;
  const auto begin = parse_seconds(with_decimals(first, kNanoseconds));
  const auto end = parse_seconds(with_decimals(last, kMicroseconds));
  if ((!first.empty() && !begin) || (!last.empty() && !end)) return false;
  if (begin) from = *begin;
  if (end) to = *end;
  return from <= to;
}

std::string check_span(const std::string& text) {
  std::uint64_t from = 0;
  std::uint64_t to = UINT64_MAX;
  return parse_span(text, from, to) ? "" : "'" + text + "' is no span of seconds FROM,TO";
}

void add_filters(CommandOptions& command, StackFilter& filter) {
  const auto add_pids = [&](const char* names, std::vector<pid_t>& pids, const char* type,
                            const char* help) {
    const auto take = [&pids](const std::string& text) {
      pid_t pid = 0;
      std::from_chars(text.data(), text.data() + text.size(), pid);
      pids.push_back(pid);
    };
    command.values(names, take, type, help).with_commas().check(check_pid);
  };
  add_pids("-p,--pid", filter.pids, "PID", "Only samples of these processes");
  add_pids("--tid", filter.tids, "TID", "Only samples of these threads");
  command.values("--comm", filter.comms, "NAME", "Only samples of threads of these names")
      .with_commas();
  command.values("--event", filter.events, "NAME", "Only samples of these events").with_commas();
  const auto take_span = [&filter](const std::string& text) {
    parse_span(text, filter.from, filter.to);
  };
  command
      .value("--time", take_span, "FROM,TO",
             "Only samples from FROM to TO, both included, in seconds of the recording's clock; "
             "six decimals, as perf prints them, stand for a whole microsecond; either may be "
             "left out")
      .check(check_span);
}

void add_unwinding(CommandOptions& command, StackOptions& stacks) {
  command
      .value("--max-stack", stacks.unwind.most_frames, "N",
             "Unwind no more frames than that (default: 1024)")
      .between(1, 1000000);
  command.flag("--stitch", stacks.stitch,
               "Complete stacks that were cut by those of other samples; such frames are marked");
  command.flag("--scan", stacks.unwind.scan,
               "Where nothing else is known, guess callers from words on the stack");
  command.flag("--jit-cfi", stacks.unwind.jit_cfi_first,
               "Trust a jitdump's unwinding information before frame pointers");
  command
      .value("--threads", stacks.threads, "N",
             "Work with that many threads (default: one a processor)")
      .between(1, 64);
}

void add_files(CommandOptions& command, StacksOptions& options) {
  const auto add_source = [&](const char* names, Source::As as, const char* help) {
    std::vector<Source>& sources = options.sources;
    const auto take = [&sources, as](const std::string& path) { sources.push_back({path, as}); };
    command.values(names, take, kFile, help).in_order();
  };
  add_source("-m,--map", Source::As::path, "A perf map, for every process");
  add_source("-j,--jitdump", Source::As::dump, "A jitdump, for every process");
  command.value("--map-dir", options.map_dir, "DIR",
                "Where perf-PID.map and jit-PID.dump of processes are: a directory, or a snapshot");
  command.value("--symfs", options.symfs, "DIR",
                "Where the ELF files of processes are, by their paths");
  command.value("--kallsyms", options.kallsyms, kFile,
                "Name the kernel's frames by a copy of /proc/kallsyms");
  command.flag("--any-owner", options.any_owner,
               "Also use maps and dumps that belong to another user");
  command.flag("--debuginfod", options.debuginfod,
               "Ask the servers of DEBUGINFOD_URLS for debug files that are not here");
}

}  // namespace

void declare_stacks(CommandOptions& command) {
  StacksOptions& options = command.runs(write_stacks);
  options.stacks.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  command
      .positional("recording", options.recording, kFile,
                  "A recording of perf record, a pprof profile, or '-'")
      .required();
  add_format(command, options.format,
             {"folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl"});
  add_output(command, options.output);
  add_filters(command, options.stacks.filter);
  const Option lines = command.flag("--lines", options.lines, "Print source lines");
  const Option inlines = command.flag("--inlines", options.inlines,
                                      "Print the functions that were inlined, with lines");
  command.flag("--addresses", options.addresses, "Print addresses without names")
      .excludes(lines)
      .excludes(inlines);
  add_no_demangle(command, options.stacks.demangle);
  command.flag("!--no-kernel", options.stacks.kernel, "Leave out the kernel's frames");
  command.flag("--merge-tiers", options.writing.merge_tiers,
               "One frame for a function, however far its runtime has optimised it");
  command.flag("--with-pid", options.writing.with_pid, "Stacks of each thread on their own");
  command.flag("--stats", options.stats, "Print a table of how stacks ended; with -o, beside them");
  add_unwinding(command, options.stacks);
  add_files(command, options);
}

}  // namespace perfmap::app
