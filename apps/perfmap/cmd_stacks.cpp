#include <algorithm>
#include <array>
#include <charconv>
#include <perfmap/json.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/stack_writer.hpp>
#include <perfmap/profile/stacks.hpp>
#include <perfmap/profile/unwinder.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct StacksOptions {
  std::string recording;
  std::string output = "-";
  std::string format;
  StackOptions stacks;
  std::string from_text;  ///< of the filter, as typed
  std::string to_text;
  StackWriter::Options writing;
  bool addresses = false;
  bool lines = false;
  bool inlines = false;
  bool stats = false;
  std::vector<Source> sources;  // of names: perf maps and jitdumps
  std::string map_dir;
  std::string symfs;
  std::string kallsyms;
  bool any_owner = false;
  bool debuginfod = false;
};

std::uint64_t ended(const StackCounts& counts, StackEnd end) {
  return counts.ends[static_cast<std::size_t>(end)];
}

std::string source_name(std::size_t source) {
  return std::string(to_string(static_cast<FrameSource>(source)));
}

std::vector<std::string> row_of(const StackCounts& counts, const std::string& pid,
                                std::string_view comm) {
  const std::uint64_t other = counts.samples - ended(counts, StackEnd::root) -
                              ended(counts, StackEnd::truncated) -
                              ended(counts, StackEnd::callchain);
  const std::uint64_t deep = counts.samples == 0 ? 0 : counts.frames * 10 / counts.samples;
  return {pid,
          one_line(comm, true),
          std::to_string(counts.samples),
          percent(ended(counts, StackEnd::root), counts.samples),
          percent(ended(counts, StackEnd::truncated), counts.samples),
          percent(other, counts.samples),
          percent(ended(counts, StackEnd::callchain), counts.samples),
          std::to_string(deep / 10) + "." + std::to_string(deep % 10),
          std::to_string(counts.unnamed),
          source_name(static_cast<std::size_t>(counts.worst_source()))};
}

void write_line(const StackCounts& counts, bool is_total, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.stack-stats/1");
  json.key("pid");
  if (is_total) {
    json.null();
  } else {
    json.integer(counts.pid);
    json.text_members("comm", counts.comm);
  }
  json.member("samples", counts.samples);
  json.member("frames", counts.frames);
  json.member("full_copies", counts.full_copies);
  json.member("stitched", counts.stitched);
  json.member("not_unwound", counts.not_unwound);
  json.member("unnamed_frames", counts.unnamed);
  json.member("unnamed_jit_frames", counts.unnamed_jit);
  json.member("doubtful_frames", counts.doubtful);
  json.key("ends");
  json.begin_object();
  for (std::size_t i = 0; i < kStackEnds; ++i)
    json.member(to_string(static_cast<StackEnd>(i)), counts.ends[i]);
  json.end_object();
  json.key("sources");
  json.begin_object();
  for (std::size_t i = 0; i < kFrameSources; ++i) json.member(source_name(i), counts.sources[i]);
  json.end_object();
  json.key("doubts");
  json.begin_object();
  for (unsigned i = 0; i < kDoubtCount; ++i) json.member(to_string(doubt_at(i)), counts.doubts[i]);
  json.end_object();
  json.end_object();
  json.newline();
}

/// Prints how the stacks of each process ended, and how their frames were found.
void write_stack_table(const StackStatistics& statistics, OutputFile& out) {
  std::vector<std::vector<std::string>> rows = {{"PID", "COMM", "SAMPLES", "ROOT", "TRUNCATED",
                                                 "OTHER", "CALLCHAIN", "FRAMES", "UNNAMED",
                                                 "WORST SOURCE"}};
  for (const StackCounts& counts : statistics.processes) {
    rows.push_back(row_of(counts, std::to_string(counts.pid), counts.comm));
  }
  rows.push_back(row_of(statistics.total, "all", ""));
  write_rows(rows, {1, 9}, out);
  std::string sources = "frames by source:";
  for (std::size_t i = 0; i < kFrameSources; ++i) {
    const std::uint64_t count = statistics.total.sources[i];
    if (count != 0) sources += " " + source_name(i) + " " + std::to_string(count);
  }
  out.write(sources + "\n");
  if (statistics.total.unnamed == 0) return;
  out.write("frames without a name: " + std::to_string(statistics.total.unnamed) + ", " +
            std::to_string(statistics.total.unnamed_jit) + " of them in JIT memory\n");
}

/// The same as JSON lines, one a process and one for all.
void write_stack_lines(const StackStatistics& statistics, OutputFile& out) {
  for (const StackCounts& counts : statistics.processes) write_line(counts, false, out);
  write_line(statistics.total, true, out);
}

/// The first option that needs a recording; empty if none is given.
std::string_view meaningless_option(const StacksOptions& options) {
  const StackFilter& filter = options.stacks.filter;
  if (options.stats) return "--stats";
  if (options.addresses) return "--addresses";
  if (options.lines) return "--lines";
  if (options.inlines) return "--inlines";
  if (options.stacks.stitch) return "--stitch";
  if (options.writing.merge_tiers) return "--merge-tiers";
  if (options.format != "folded" && options.format != "pprof") return "--format";
  if (!filter.tids.empty()) return "--tid";
  if (!filter.comms.empty()) return "--comm";
  if (!filter.events.empty()) return "--event";
  if (filter.from != 0) return "--from";
  if (filter.to != UINT64_MAX) return "--to-time";
  if (filter.pids.size() > 1) return "more than one --pid";
  return {};
}

/// The sources of the command line.
Result<std::shared_ptr<JitSources>> open_given(const std::vector<Source>& sources,
                                               const Console& console) {
  Result<SourceFiles> files = open_source_files(sources, {}, console);
  if (!files) return Failure(std::move(files.error()));
  auto given = std::make_shared<JitSources>(std::move(files->maps), std::move(files->dumps));
  const Diagnostics& problems = given->problems();
  const std::uint64_t skipped = problems.total() - problems.count_of(rule::kAddressWrap);
  if (skipped != 0) {
    console.note("skipped " + counted(skipped, "malformed part") +
                 " of the given maps and jitdumps (run 'perfmap lint' for details)");
  }
  return given;
}

/// Names of processes: from the sources of the command line, or from files found by a pid.
class ProcessNames {
 public:
  ProcessNames(const StacksOptions& options, const Console& console)
      : options_(options), console_(console) {}

  Result<void> open() {
    Result<RecordedJitOptions> jit =
        recorded_jit_options({options_.map_dir, {}, options_.any_owner});
    if (!jit) return Failure(std::move(jit.error()));
    by_pid_ = find_recorded_jit(*std::move(jit), refused_);
    std::vector<Source> sources = options_.sources;
    const auto& pids = options_.stacks.filter.pids;
    if (sources.empty() && !pids.empty() && options_.map_dir.empty()) {
      sources.push_back({std::to_string(pids.front()), Source::As::pid});
    }
    if (sources.empty()) return {};
    auto given = open_given(sources, console_);
    if (!given) return Failure(std::move(given.error()));
    given_ = *std::move(given);
    return {};
  }

  std::shared_ptr<JitSources> find(pid_t pid) {
    const auto& pids = options_.stacks.filter.pids;
    if (!pids.empty() && pid != 0 && pid != pids.front()) return nullptr;
    if (given_ != nullptr) return given_;
    ProcessInfo process;
    process.pid = pids.empty() ? pid : pids.front();
    return process.pid == 0 ? nullptr : by_pid_(process, {});
  }

  void warn() const { report_refused(refused_, console_); }

 private:
  const StacksOptions& options_;
  const Console& console_;
  RecordedRefusals refused_;
  StackOptions::FindJit by_pid_;
  std::shared_ptr<JitSources> given_;
};

void say(const PprofNamed& report, const std::string& name, const Console& console) {
  console.note(name + ": named " + std::to_string(report.named) + " of " +
               std::to_string(report.jit) + " locations in JIT code");
  if (report.without_process != 0) {
    console.warn(name + " has no pid for " + std::to_string(report.without_process) +
                 " locations in JIT code: use --pid, --map or --jitdump");
  }
}

/// Writes an existing pprof profile with names for its JIT code.
ExitCode write_named_profile(const StacksOptions& options, const Input& profile,
                             const Console& console) {
  if (const std::string_view option = meaningless_option(options); !option.empty()) {
    return console.fail(profile.name() + " is a pprof profile, which does not support " +
                        std::string(option));
  }
  ProcessNames names(options, console);
  const Result<void> opened = names.open();
  if (!opened) return console.fail(opened.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  PprofNaming naming;
  naming.find = [&names](pid_t pid) { return names.find(pid); };
  naming.demangle = options.stacks.demangle;
  const Step step(console, "naming " + profile.name());
  const Result<PprofNamed> report = name_pprof(profile.text(), naming, *out);
  if (!report) return console.fail("cannot read " + profile.name() + ": " + report.error().message);
  if (profile.was_truncated())
    return console.fail(profile.name() + " was truncated while it was read");
  const Result<void> written = out->commit();
  if (!written) return console.fail(written.error());
  names.warn();
  say(*report, profile.name(), console);
  return ExitCode::ok;
}

using Names = StackOptions::Names;

/// Whether no stacks are written.
bool prints_only_table(const StacksOptions& options) {
  return options.stats && options.output == "-";
}

Names names_of(const StacksOptions& options) {
  if (options.addresses) return Names::none;
  if (options.inlines) return Names::inlines;
  return options.lines ? Names::lines : Names::symbols;
}

/// All objects that turn samples into stacks.
class Reading {
 public:
  static Result<std::unique_ptr<Reading>> open(Input input, const StacksOptions& options,
                                               const Console& console) {
    Result<Recording> recording = Recording::open(std::move(input));
    if (!recording) return Failure(std::move(recording.error()));
    ModuleCacheOptions cache;
    cache.debug_directories = {"/usr/lib/debug"};
    if (options.debuginfod) {
      Result<Debuginfod> servers = Debuginfod::open();
      if (!servers) return Failure(std::move(servers.error()));
      cache.fetch = asking(*servers, console);
    }
    std::unique_ptr<Reading> reading(new Reading(*std::move(recording), std::move(cache)));
    const Result<void> ready = reading->prepare(options, console);
    if (!ready) return Failure(ready.error());
    return reading;
  }

  const Recording& recording() const noexcept { return recording_; }
  StackReader& reader() noexcept { return *reader_; }

  /// Files that were missing or refused.
  void warn(const Console& console) const {
    report_refused(refused_, console);
    warn_unreadable(reader_->failures(), console);
    note_without_lines(reader_->without_lines(), console);
    note_kernel(kernel_, console);
  }

 private:
  Reading(Recording recording, ModuleCacheOptions cache)
      : recording_(std::move(recording)), cache_(std::move(cache)) {}

  Result<void> prepare(const StacksOptions& options, const Console& console) {
    StackOptions stacks = options.stacks;
    stacks.names = names_of(options);
    Result<RecordedJitOptions> jit = recorded_jit_options(
        {options.map_dir, options.symfs, options.any_owner, options.recording});
    if (!jit) return Failure(std::move(jit.error()));
    stacks.open_module = open_recorded_modules(cache_, recording_, *jit);
    if (!options.sources.empty()) {
      auto given = open_given(options.sources, console);
      if (!given) return Failure(std::move(given.error()));
      jit->given = *std::move(given);
    }
    stacks.find_parents = find_recorded_parents(recording_, *jit);
    stacks.find_jit = find_recorded_jit(recording_, *std::move(jit), refused_);
    const Result<void> given =
        options.kallsyms.empty() ? Result<void>() : kernel_.open(options.kallsyms);
    if (!given) return Failure(given.error());
    stacks.find_kallsyms = [this](const RecordedKernel& kernel) { return kernel_.text_of(kernel); };
    reader_.emplace(recording_, std::move(stacks));
    return {};
  }

  Recording recording_;
  ModuleCache cache_;
  RecordedRefusals refused_;
  KernelSource kernel_;
  std::optional<StackReader> reader_;
};

/// Prints what is missing in a damaged recording: the first damages one by one, then a sum.
void note_damage(const Recording& recording, const StackStatistics& statistics,
                 const Diagnostics& problems, const Console& console) {
  const std::string& name = recording.input().name();
  if (recording.facts().was_killed) {
    console.warn(
        name +
        ": perf was killed, so data that it had not yet written is missing, such as build IDs");
  }
  for (const Diagnostic& problem : problems.items()) {
    console.warn(name + ":+0x" + to_hex(problem.where.offset) + ": " + problem.message);
  }
  if (problems.total() > problems.items().size()) {
    console.warn(name + ": " + std::to_string(statistics.lost_bytes) +
                 " bytes of the recording are malformed and left out (" +
                 std::to_string(problems.total()) + " places)");
  }
}

/// The given filters, as options.
std::string filters_of(const StackFilter& filter) {
  std::vector<std::string> given;
  const auto add = [&](bool is_given, const char* name) {
    if (is_given) given.emplace_back(name);
  };
  add(!filter.pids.empty(), "--pid");
  add(!filter.tids.empty(), "--tid");
  add(!filter.comms.empty(), "--comm");
  add(!filter.events.empty(), "--event");
  add(filter.from != 0, "--from");
  add(filter.to != UINT64_MAX, "--to-time");
  std::string names;
  for (std::size_t i = 0; i < given.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == given.size() ? " and " : ", ") + given[i];
  }
  return names;
}

/// "; the recording is from 3.5 to 4.25 s", if it says so.
std::string span_text(const Recording& recording) {
  const std::uint64_t first = recording.facts().first_sample;
  const std::uint64_t last = recording.facts().last_sample;
  if (first == 0 && last == 0) return "";
  return "; the recording's samples are from " + seconds_text(first) + " to " + seconds_text(last);
}

/// If no sample passes the filters, prints the names that exist: one may be mistyped.
void note_filters(const Recording& recording, const StackFilter& filter,
                  const StackStatistics& statistics, const Console& console) {
  if (statistics.total.samples != 0 || statistics.filtered == 0) return;
  const bool only_times =
      filter.pids.empty() && filter.tids.empty() && filter.comms.empty() && filter.events.empty();
  if (only_times) {
    return console.note("no sample is in the span of " + filters_of(filter) + span_text(recording));
  }
  std::string names;
  for (const RecordedEvent& event : recording.events()) {
    names += (names.empty() ? "" : ", ") + event.name;
  }
  console.note("none of " + std::to_string(statistics.filtered) + " samples passes " +
               filters_of(filter) +
               (filter.events.empty() ? "" : "; the recording's events are " + names));
}

void note_losses(const StackStatistics& statistics, const Console& console) {
  const auto say = [&](std::uint64_t count, const std::string& what) {
    if (count != 0) console.warn(std::to_string(count) + " " + what);
  };
  say(statistics.lost, "events were lost during the recording");
  say(statistics.out_of_order, "records were too far out of order to be sorted by time");
}

/// Warns that a format without events adds samples of different events.
void note_events(const StacksOptions& options, const Recording& recording,
                 const std::set<std::uint32_t>& seen, const Console& console) {
  const bool has_place =
      options.format != "folded" && options.format != "html" && !prints_only_table(options);
  if (has_place || seen.size() < 2) return;
  std::string names;
  for (const std::uint32_t event : seen) {
    if (event < recording.events().size())
      names += (names.empty() ? "" : ", ") + recording.events()[event].name;
  }
  console.note("samples of several events are counted together: " + names +
               " (--event NAME selects one)");
}

ExitCode read_all(Reading& reading, StackWriter* writer, std::set<std::uint32_t>& events,
                  Diagnostics& problems, const Console& console) {
  const Step step(console, "reading " + reading.recording().input().name());
  const std::uint64_t size = reading.recording().input().facts().size;
  reading.reader().read(
      [&](const StackSample& sample) {
        events.insert(sample.event);
        if (writer != nullptr) writer->add(sample);
      },
      problems, [&](std::uint64_t position) { console.progress().done(position, size); });
  if (reading.recording().input().was_truncated()) {
    return console.fail(reading.recording().input().name() + " was truncated while it was read");
  }
  return ExitCode::ok;
}

void write_table(const StacksOptions& options, const StackStatistics& statistics,
                 const Console& console) {
  if (options.format == "jsonl") {
    write_stack_lines(statistics, console.out());
  } else {
    write_stack_table(statistics, console.out());
  }
}

Result<void> check_not_terminal(const StacksOptions& options, const Console& console) {
  if (options.output != "-" || !console.out_is_terminal()) return {};
  return Failure(Error{Errc::invalid_argument,
                       "cannot write a pprof profile to a terminal: name a file with -o",
                       0,
                       {}});
}

/// Prints notes about the stacks that were written.
void note_all(const Reading& reading, const StacksOptions& options,
              const StackStatistics& statistics, const Diagnostics& problems,
              const Console& console) {
  const StackFilter& filter = options.stacks.filter;
  note_filters(reading.recording(), filter, statistics, console);
  note_damage(reading.recording(), statistics, problems, console);
  note_losses(statistics, console);
  const StackCounts& total = statistics.total;
  if (total.not_unwound != 0) {
    const std::string& arch = reading.recording().facts().arch;
    console.warn(std::to_string(total.not_unwound) + " of " + counted(total.samples, "sample") +
                 " are from a machine whose stacks perfmap cannot unwind (" +
                 one_line(arch.empty() ? "unknown" : arch, true) +
                 "): they have one frame, or the frames that the kernel found");
  }
  note_doubts({total.frames, total.doubtful, total.doubts}, "frames", console);
  if (!options.addresses && total.unnamed_jit != 0 && total.unnamed_jit * 100 >= total.frames) {
    console.note(std::to_string(total.unnamed_jit) + " of " + counted(total.frames, "frame") +
                 " are JIT code without a name ('perfmap doctor " +
                 reading.recording().input().name() + "' explains why)");
  }
}

/// Fails if the options contradict each other.
Result<void> check_options(const StacksOptions& options, StackFormat format,
                           const Console& console) {
  const auto fail = [](const std::string& why) -> Result<void> {
    return Failure({Errc::invalid_argument, why, 0, {}});
  };
  const StackFilter& filter = options.stacks.filter;
  if (filter.to < filter.from) {
    return fail("--to-time " + options.to_text + " is before --from " + options.from_text);
  }
  if (options.recording == "-" && reads_stdin(options.sources)) {
    return fail("standard input can be a source only once");
  }
  if (options.writing.with_pid && format != StackFormat::folded) {
    return fail("--with-pid supports only --format folded");
  }
  if (format == StackFormat::pprof && !prints_only_table(options)) {
    const Result<void> fits = check_not_terminal(options, console);
    if (!fits) return fits;
  }
  return check_directories({options.map_dir, options.symfs});
}

/// Writes the stacks of a recording.
ExitCode write_stacks(const StacksOptions& options, const Console& console) {
  const StackFormat format = stack_format(options.format).value_or(StackFormat::folded);
  const Result<void> checked = check_options(options, format, console);
  if (!checked) return console.fail(checked.error());
  Result<Input> input = open_recording_input(options.recording);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(options.output, *input);
  if (!other) return console.fail(other.error());
  if (!is_recording(input->text()) && may_be_pprof(input->text())) {
    const Result<void> fits = check_not_terminal(options, console);
    return fits ? write_named_profile(options, *input, console) : console.fail(fits.error());
  }
  Result<std::unique_ptr<Reading>> reading = Reading::open(*std::move(input), options, console);
  if (!reading) return console.fail(reading.error());
  StackReader& reader = (*reading)->reader();
  std::optional<OutputFile> out;
  std::unique_ptr<StackWriter> writer;
  if (!prints_only_table(options)) {
    Result<OutputFile> opened = open_output(options.output);
    if (!opened) return console.fail(opened.error());
    out.emplace(*std::move(opened));
    StackProfile profile = profile_of((*reading)->recording());
    profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
    StackWriter::Options writing = options.writing;
    writing.lines = options.lines || options.inlines;
    writing.doubt_kinds = console.verbose();
    writer = StackWriter::make(format, *out, reader.table(), std::move(profile), writing);
  }
  Diagnostics problems(3);
  std::set<std::uint32_t> events;
  const ExitCode read = read_all(**reading, writer.get(), events, problems, console);
  if (read != ExitCode::ok) return read;
  if (writer != nullptr) {
    const Result<void> finished = writer->finish();
    const Result<void> written = finished ? out->commit() : finished;
    if (!written) return console.fail(written.error());
  }
  if (options.stats) write_table(options, reader.statistics(), console);
  (*reading)->warn(console);
  note_events(options, (*reading)->recording(), events, console);
  note_all(**reading, options, reader.statistics(), problems, console);
  return ExitCode::ok;
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

/// perf prints microseconds and cuts off the rest. So a span ends with the last nanosecond that is
/// printed like `text`.
constexpr std::size_t kNanoseconds = 9;
constexpr std::size_t kMicroseconds = 6;

void add_filters(CommandOptions& command, StacksOptions& options) {
  StackFilter& filter = options.stacks.filter;
  const auto add_pids = [&](const char* names, std::vector<pid_t>& pids, const char* type,
                            const char* help, const Check& check) {
    const auto take = [&pids](const std::string& text) {
      pid_t pid = 0;
      std::from_chars(text.data(), text.data() + text.size(), pid);
      pids.push_back(pid);
    };
    command.values(names, take, type, help).with_commas().check(check);
  };
  add_pids("-p,--pid", filter.pids, "PID", "Use only samples of these processes", check_pid);
  add_pids("--tid", filter.tids, "TID", "Use only samples of these threads", check_tid);
  command.values("--comm", filter.comms, "NAME", "Use only samples of threads with these names")
      .with_commas();
  command.values("--event", filter.events, "NAME", "Use only samples of these events")
      .with_commas();
  const auto add_end = [&](const char* name, std::uint64_t& end, std::string& typed,
                           std::size_t decimals, const char* help) {
    const auto parse = [decimals](const std::string& text) {
      return parse_seconds(with_decimals(text, decimals));
    };
    const auto take = [&end, &typed, parse](const std::string& text) {
      end = *parse(text);
      typed = text;
    };
    command.value(name, take, "SECONDS", help).check([parse](const std::string& text) {
      return !text.empty() && parse(text) ? "" : "'" + text + "' is not a time in seconds";
    });
  };
  add_end("--from", filter.from, options.from_text, kNanoseconds,
          "Use only samples from this time on, in seconds of the recording's clock");
  add_end("--to-time", filter.to, options.to_text, kMicroseconds,
          "Use only samples up to and including this time; a time with six decimals, as perf "
          "prints it, includes the whole microsecond");
}

void add_unwinding(CommandOptions& command, StackOptions& stacks) {
  command
      .value("--max-stack", stacks.unwind.max_frames, "N",
             "Unwind at most N frames (default: 1024)")
      .between(1, 1000000);
  command.flag("--stitch", stacks.stitch,
               "Complete truncated stacks with frames from other samples; these frames are marked");
  command.flag("--scan", stacks.unwind.scan,
               "Guess callers from words on the stack if nothing else is known");
  command.flag("--jit-cfi", stacks.unwind.jit_cfi_first,
               "Trust a jitdump's unwinding information before frame pointers");
  command.value("--threads", stacks.threads, "N", "Use N threads (default: one for each processor)")
      .between(1, 64);
}

void add_files(CommandOptions& command, StacksOptions& options) {
  command.value(
      "--map-dir", options.map_dir, "DIR",
      "Look for perf-PID.map and jit-PID.dump of processes in this directory or snapshot");
  command.value("--symfs", options.symfs, "DIR",
                "Look for the files of processes below this directory, at their original paths");
  command.value("--kallsyms", options.kallsyms, kFile,
                "Use this copy of /proc/kallsyms to name kernel frames");
  command.flag("--any-owner", options.any_owner,
               "Also use maps and dumps that belong to another user");
  command.flag("--debuginfod", options.debuginfod,
               "Fetch missing debug files from the servers in DEBUGINFOD_URLS");
}

}  // namespace

namespace {

constexpr std::array kSuffixes = {
    SuffixFormat{".html", "html"},
    SuffixFormat{".folded", "folded"},
    SuffixFormat{".pb.gz", "pprof"},
    SuffixFormat{".pb", "pprof"},
    SuffixFormat{".speedscope.json", "speedscope"},
    SuffixFormat{".firefox.json", "firefox"},
    SuffixFormat{".jsonl", "jsonl"},
    SuffixFormat{".json", ""},
    SuffixFormat{".txt", "perf-script"},
};

Result<void> choose_format_of(StacksOptions& options, const Console& console) {
  return choose_format("--format", options.format, options.output, kSuffixes,
                       stack_format_names().front(), console);
}

}  // namespace

void declare_stacks(CommandOptions& command) {
  StacksOptions& options = command.runs(write_stacks, choose_format_of);
  options.stacks.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  const auto take_recording = [&options](const std::string& text) {
    return options.recording.empty() && (options.recording = text, true);
  };
  add_sources(command, options.sources,
              {.name = "recording",
               .type = kFile,
               .help = "A recording of perf record, a pprof profile, or '-'. Further arguments are "
                       "maps and jitdumps, which are used for all processes",
               .take_other = take_recording,
               .with_pid = false})
      .required();
  const std::vector<std::string> formats = stack_format_names();
  add_output_format(command, "--format", options.format, formats, kSuffixes, formats.front());
  add_output(command, options.output);
  add_filters(command, options);
  const Option lines = command.flag("--lines", options.lines, "Print source lines");
  const Option inlines =
      command.flag("--inlines", options.inlines, "Also print inlined functions, with source lines");
  command
      .flag("--addresses", options.addresses,
            "Print addresses instead of names (perf-script, jsonl), or the files of frames (other "
            "formats)")
      .excludes(lines)
      .excludes(inlines);
  add_no_demangle(command, options.stacks.demangle);
  command.flag("!--no-kernel", options.stacks.kernel, "Omit kernel frames");
  command.flag("--merge-tiers", options.writing.merge_tiers,
               "Merge the frames of a function's compiler tiers");
  command.flag("--with-pid", options.writing.with_pid,
               "Begin each folded stack with NAME-PID/TID of its thread");
  command.flag(
      "--stats", options.stats,
      "Print a table of how stacks ended, instead of the stacks; with -o, also write the stacks");
  add_unwinding(command, options.stacks);
  add_files(command, options);
}

}  // namespace perfmap::app
