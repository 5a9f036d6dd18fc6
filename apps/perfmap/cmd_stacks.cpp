#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <perfmap/seconds.hpp>
#include <thread>

#include "options.hpp"
#include "readable_name.hpp"
#include "stacks_options.hpp"

namespace perfmap::app {
namespace {

/// Values of an option that may come several times, or be a list with commas.
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                      const std::string& help, const char* type) {
  return command.add_option(name, values, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name(type);
}

CLI::Option* add_pids(CLI::App& command, const std::string& name, std::vector<pid_t>& pids,
                      const std::string& help, const char* type) {
  return command
      .add_option_function<std::vector<std::string>>(
          name,
          [&pids](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              pid_t pid = 0;
              std::from_chars(text.data(), text.data() + text.size(), pid);
              pids.push_back(pid);
            }
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(is_pid())
      ->type_name(type);
}

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

void add_filters(CLI::App& command, StackFilter& filter) {
  add_pids(command, "-p,--pid", filter.pids, "Only samples of these processes", "PID");
  add_pids(command, "--tid", filter.tids, "Only samples of these threads", "TID");
  add_list(command, "--comm", filter.comms, "Only samples of threads of these names", "NAME");
  add_list(command, "--event", filter.events, "Only samples of these events", "NAME");
  const auto is_span = [](const std::string& text) {
    std::uint64_t from = 0;
    std::uint64_t to = UINT64_MAX;
    return parse_span(text, from, to) ? "" : "'" + text + "' is no span of seconds FROM,TO";
  };
  command
      .add_option_function<std::string>(
          "--time",
          [&filter](const std::string& text) { parse_span(text, filter.from, filter.to); },
          "Only samples from FROM to TO, both included, in seconds of the recording's clock; six "
          "decimals, as perf prints them, stand for a whole microsecond; either may be left out")
      ->check(CLI::Validator(is_span, ""))
      ->type_name("FROM,TO")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_unwinding(CLI::App& command, StackOptions& stacks) {
  command
      .add_option("--max-stack", stacks.unwind.most_frames,
                  "Unwind no more frames than that (default: 1024)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_flag(
      "--stitch", stacks.stitch,
      "Complete stacks that were cut by those of other samples; such frames are marked");
  command.add_flag("--scan", stacks.unwind.scan,
                   "Where nothing else is known, guess callers from words on the stack");
  command.add_flag("--jit-cfi", stacks.unwind.jit_cfi_first,
                   "Trust a jitdump's unwinding information before frame pointers");
  command
      .add_option("--threads", stacks.threads,
                  "Work with that many threads (default: one a processor)")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_source(CLI::App& command, const std::string& name, Source::As as,
                std::vector<Source>& sources, const std::string& help) {
  command
      .add_option_function<std::vector<std::string>>(
          name,
          [as, &sources](const std::vector<std::string>& paths) {
            for (const std::string& path : paths) sources.push_back({path, as});
          },
          help)
      ->allow_extra_args(false)
      ->trigger_on_parse()
      ->type_name(kFile);
}

void add_files(CLI::App& command, StacksOptions& options) {
  add_source(command, "-m,--map", Source::As::path, options.sources,
             "A perf map, for every process");
  add_source(command, "-j,--jitdump", Source::As::dump, options.sources,
             "A jitdump, for every process");
  const auto add_path = [&](const std::string& name, std::string& value, const std::string& help,
                            const char* type) {
    command.add_option(name, value, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  add_path("--map-dir", options.map_dir,
           "Where perf-PID.map and jit-PID.dump of processes are: a directory, or a snapshot",
           "DIR");
  add_path("--symfs", options.symfs, "Where the ELF files of processes are, by their paths", "DIR");
  add_path("--kallsyms", options.kallsyms, "Name the kernel's frames by a copy of /proc/kallsyms",
           kFile);
  command.add_flag("--any-owner", options.any_owner,
                   "Also use maps and dumps that belong to another user");
  command.add_flag("--debuginfod", options.debuginfod,
                   "Ask the servers of DEBUGINFOD_URLS for debug files that are not here");
}

}  // namespace

void declare_stacks(CLI::App& command, Action& action) {
  const auto options = std::make_shared<StacksOptions>();
  options->stacks.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  command
      .add_option("recording", options->recording,
                  "A recording of perf record, a pprof profile, or '-'")
      ->type_name(kFile)
      ->required();
  add_format(command, options->format,
             {"folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl"});
  add_output(command, options->output, "Write there instead of standard output");
  add_filters(command, options->stacks.filter);
  CLI::Option* const lines = command.add_flag("--lines", options->lines, "Print source lines");
  CLI::Option* const inlines = command.add_flag(
      "--inlines", options->inlines, "Print the functions that were inlined, with lines");
  command.add_flag("--addresses", options->addresses, "Print addresses without names")
      ->excludes(lines)
      ->excludes(inlines);
  add_no_demangle(command, options->stacks.demangle);
  command.add_flag("!--no-kernel", options->stacks.kernel, "Leave out the kernel's frames");
  command.add_flag("--merge-tiers", options->writing.merge_tiers,
                   "One frame for a function, however far its runtime has optimised it");
  command.add_flag("--with-pid", options->writing.with_pid, "Stacks of each thread on their own");
  command.add_flag("--stats", options->stats,
                   "Print a table of how stacks ended; with -o, beside them");
  add_unwinding(command, options->stacks);
  add_files(command, *options);
  command.callback([options, &action] {
    action = [options](const Console& c) { return write_stacks(*options, c); };
  });
}

}  // namespace perfmap::app
