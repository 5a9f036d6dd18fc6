// SPDX-License-Identifier: MIT
#include "recorded_stacks.hpp"

#include <algorithm>
#include <charconv>
#include <perfmap/jit_format.hpp>
#include <perfmap/profile/annotate.hpp>
#include <perfmap/runtimes.hpp>
#include <perfmap/text.hpp>
#include <thread>
#include <utility>

#include "perfmap/text.hpp"

namespace perfmap::app {

Result<std::shared_ptr<JitSources>> open_given(const std::vector<Source>& sources,
                                               const Console& console) {
  Result<SourceFiles> files = open_source_files(sources, {}, console);
  if (!files) return failure(files);
  auto given = std::make_shared<JitSources>(std::move(files->maps), std::move(files->dumps));
  const Diagnostics& problems = given->problems();
  const std::uint64_t skipped = problems.total() - problems.count_of(rule::kAddressWrap);
  if (skipped != 0) {
    console.note("skipped " + counted(skipped, "malformed part") +
                 " of the given maps and jitdumps (run 'perfmap lint' for details)");
  }
  return given;
}

Result<ModuleCacheOptions> module_cache_options(const RecordedStacksOptions& options,
                                                const Console& console) {
  ModuleCacheOptions cache;
  cache.debug_directories = {"/usr/lib/debug"};
  if (!options.debuginfod) return cache;
  Result<Debuginfod> servers = Debuginfod::open();
  if (!servers) return failure(servers);
  cache.fetch = asking(*servers, console);
  return cache;
}

Result<std::unique_ptr<Reading>> Reading::open(Input input, const RecordedStacksOptions& options,
                                               StackOptions::Names names, const Console& console) {
  Result<Recording> recording = Recording::open(std::move(input));
  if (!recording) return failure(recording);
  std::unique_ptr<Reading> reading(new Reading(*std::move(recording)));
  const Result<void> ready = reading->prepare(options, names, console);
  if (!ready) return failure(ready);
  return reading;
}

void Reading::warn(const Console& console) const {
  report_refused(refused_, console);
  advise_on_foreign(refused_, console);
  warn_unreadable(reader_->failures(), console);
  note_kernel(kernel_, console);
}

Result<void> Reading::prepare(const RecordedStacksOptions& options, StackOptions::Names names,
                              const Console& console) {
  StackOptions stacks = options.stacks;
  stacks.names = names;
  if (options.modules == nullptr) {
    Result<ModuleCacheOptions> caching = module_cache_options(options, console);
    if (!caching) return failure(caching);
    own_modules_.emplace(*std::move(caching));
  }
  ModuleCache& modules = options.modules != nullptr ? *options.modules : *own_modules_;
  Result<RecordedJitOptions> jit = recorded_jit_options(
      {options.map_dir, options.symfs, options.any_owner, options.recording}, console);
  if (!jit) return failure(jit);
  stacks.open_module = open_recorded_modules(modules, recording_, *jit);
  if (!options.sources.empty()) {
    auto given = open_given(options.sources, console);
    if (!given) return failure(given);
    jit->given = *std::move(given);
  }
  stacks.find_parents = find_recorded_parents(recording_, *jit);
  stacks.find_jit = find_recorded_jit(recording_, *std::move(jit), refused_);
  const Result<void> given =
      options.kallsyms.empty() ? Result<void>() : kernel_.open(options.kallsyms);
  if (!given) return failure(given);
  stacks.find_kallsyms = [this](const RecordedKernel& kernel) { return kernel_.text_of(kernel); };
  if (options.watch) options.watch(stacks);
  reader_.emplace(recording_, std::move(stacks));
  return {};
}

ExitCode Reading::read(const std::function<void(const StackSample&)>& visit, Diagnostics& problems,
                       const Console& console) {
  const Input& input = recording_.input();
  const Step step(console, "reading " + input.name());
  const std::uint64_t size = input.facts().size;
  reader_->read(visit, problems,
                [&](std::uint64_t position) { console.progress().done(position, size); });
  return input.was_truncated() ? console.fail(input.name() + " was truncated while it was read")
                               : ExitCode::ok;
}

namespace {

/// Prints what is missing in a damaged recording: the first damages one by one, then a sum.
void note_damage(const Recording& recording, const StackStatistics& statistics,
                 const Diagnostics& problems, const Console& console) {
  const std::string& name = recording.input().name();
  if (recording.facts().was_killed) {
    console.warn(
        name +
        ": perf did not finish the recording, so data that it had not yet written is missing, such "
        "as build IDs");
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

/// " ('perfmap doctor RECORDING' explains why)": of a recording directory, its own name.
std::string ask_doctor(const Recording& recording) {
  const std::string& name = recording.input().name();
  std::string directory = recording_directory_of(name);
  if (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return " ('perfmap doctor " + shell_word(directory.empty() ? name : directory) +
         "' explains why)";
}

void note_losses(const StackStatistics& statistics, const Console& console) {
  const auto say = [&](std::uint64_t count, const std::string& what) {
    if (count != 0) console.warn(std::to_string(count) + " " + what);
  };
  say(statistics.lost, "events were lost during the recording");
  say(statistics.out_of_order, "records were too far out of order to be sorted by time");
}

}  // namespace

void note_filters(const std::vector<StackProfile::Event>& events, const StackFilter& filter,
                  const StackStatistics& statistics, const std::string& span,
                  const Console& console) {
  if (statistics.total.samples != 0) return;
  if (statistics.filtered == 0) return console.note("there are no samples");
  const bool only_times =
      filter.pids.empty() && filter.tids.empty() && filter.comms.empty() && filter.events.empty();
  if (only_times) return console.note("no sample is in the span of " + filters_of(filter) + span);
  std::string names;
  for (const StackProfile::Event& event : events) names += (names.empty() ? "" : ", ") + event.name;
  console.note("none of " + std::to_string(statistics.filtered) + " samples passes " +
               filters_of(filter) +
               (filter.events.empty() ? "" : "; the recording's events are " + names));
}

void note_stacks(const Reading& reading, const StackFilter& filter,
                 const StackStatistics& statistics, const Diagnostics& problems, bool needs_names,
                 const Console& console) {
  const Recording& recording = reading.recording();
  if (statistics.total.samples == 0 && statistics.filtered == 0) {
    console.note("there are no samples" + ask_doctor(recording));
  } else {
    note_filters(profile_of(recording).events, filter, statistics, span_text(recording), console);
  }
  note_damage(recording, statistics, problems, console);
  note_losses(statistics, console);
  const StackCounts& total = statistics.total;
  if (total.not_unwound != 0) {
    const std::string& arch = recording.facts().arch;
    console.warn(std::to_string(total.not_unwound) + " of " + counted(total.samples, "sample") +
                 " are from a machine whose stacks perfmap cannot unwind (" +
                 one_line(arch.empty() ? "unknown" : arch, true) +
                 "): they have one frame, or the frames that the kernel found");
  }
  note_doubts({total.frames, total.doubtful, total.doubts}, "frames", console);
  if (needs_names && total.unnamed_jit != 0 && total.unnamed_jit * 100 >= total.frames) {
    console.note(std::to_string(total.unnamed_jit) + " of " + counted(total.frames, "frame") +
                 " are JIT code without a name" + ask_doctor(recording));
  }
}

std::string reason_for_no_lines(const FrameFunction& function,
                                std::span<const std::string> without_lines) {
  if (function.kind == FrameKind::jit) {
    const DecodedName name =
        decode_name(function.system_name.empty() ? function.name : function.system_name);
    const Tier* const tier = find_tier(name.tier);
    const bool is_own_code = tier != nullptr && tier->is_own_code;
    const bool is_explained = is_own_code || is_dump_path(function.module);
    return is_explained ? "" : std::string(runtime_info(name.runtime).guide.lines);
  }
  if (std::ranges::find(without_lines, function.module) == without_lines.end()) return "";
  return one_line(function.module, true) +
         " has no debug information, which also names inlined functions (compile with -g; "
         "--debuginfod fetches that of packages)";
}

namespace {

bool is_code_of_runtime(const FrameFunction& function) {
  if (function.kind == FrameKind::native) {
    return runtime_of_program(function.module) != nullptr ||
           runtime_of_library(function.module) != nullptr;
  }
  const Tier* const tier = find_tier(function.tier);
  return function.kind == FrameKind::jit && tier != nullptr && tier->is_own_code;
}

}  // namespace

std::vector<std::string> reasons_for_no_names(std::span<const FrameFunction> functions,
                                              const Recording& recording,
                                              const RecordedStacksOptions& options,
                                              const Console& console) {
  if (!std::ranges::any_of(functions, is_code_of_runtime)) return {};
  Result<RecordedJitOptions> jit = recorded_jit_options(
      {options.map_dir, options.symfs, options.any_owner, options.recording}, console);
  if (!jit) return {};
  RecordedRefusals refused;
  std::vector<std::string> reasons;
  const RecordingDiagnosis diagnosis = examine_recording(recording, *std::move(jit), refused);
  for (const RecordingFinding& one : diagnosis.findings) {
    if (is_about_naming(one.finding)) reasons.push_back(one.finding.message);
  }
  return reasons;
}

namespace {

/// The first word that begins with "-".
std::string_view option_of(std::string_view command) {
  const std::size_t begin = std::min(command.find(" -"), command.size() - 1) + 1;
  return command.substr(begin, command.find(' ', begin) - begin);
}

/// Names those source files, or only the first of many, whose lines may not be those that ran.
void note_changed(const SourceText& source, const Console& console) {
  for (const bool is_program : {true, false}) {
    std::vector<std::string> files;
    for (const SourceText::Changed& one : source.changed()) {
      if (one.is_program == is_program) files.push_back(one_line(one.file, true));
    }
    const std::size_t more = files.empty() || console.verbose() ? 0 : files.size() - 1;
    if (more != 0) files.resize(1);
    for (const std::string& file : files) {
      const std::string what =
          more == 0 ? file + " was" : file + " and " + counted(more, "more file") + " were";
      console.note(what + " changed after the " + (is_program ? "program was built" : "recording") +
                   ", so lines that are shown may not be those that ran: show the " +
                   (more == 0 ? "file" : "files") + " of that time, below --symfs DIR, or " +
                   (is_program ? "build and record again" : "record again"));
    }
  }
}

}  // namespace

void warn_no_text(const std::string& why, const Console& console) {
  console.warn("instructions have no text: " + why);
}

void warn_sources(const SourceText& source, const Console& console) {
  std::vector<Error> others, refused;
  for (const Error& error : source.failures()) {
    (error.doing == "cannot use" ? refused : others).push_back(error);
  }
  warn_unreadable(others, console);
  const bool is_short = refused.size() > 1 && !console.verbose();
  if (is_short) {
    console.warn(std::to_string(refused.size()) +
                 " source files cannot be used: " + refused[0].path + ": " + refused[0].why() +
                 ", and " + std::to_string(refused.size() - 1) + " more (--verbose names them)");
  }
  for (const Error& error : refused) {
    if (!is_short) console.warn(error.message());
  }
  note_changed(source, console);
}

std::string note_of_inlining(const FrameFunction& function, const Recording& recording) {
  if (function.kind != FrameKind::jit) return "";
  const DecodedName name =
      decode_name(function.system_name.empty() ? function.name : function.system_name);
  const Tier* const tier = find_tier(function.tier);
  // The JVM's methods have no tier.
  const bool is_optimized =
      tier == nullptr || (!tier->is_own_code &&
                          (tier->code == TierClass::middle || tier->code == TierClass::optimized));
  const std::string_view command = runtime_info(name.runtime).guide.inlining_off;
  if (!is_optimized || command.empty() || !name.inline_chain.empty()) return "";
  const std::vector<std::string>& started = recording.facts().command_line;
  if (std::ranges::count(started, option_of(command)) != 0) return "";
  return "'" + one_line(function.name, true) +
         "' may contain inlined functions, which have no names here: their samples count as its "
         "own ('" +
         std::string(command) + "' turns inlining off)";
}

Result<void> check_recorded_options(const RecordedStacksOptions& options) {
  const StackFilter& filter = options.stacks.filter;
  if (filter.to < filter.from) {
    return invalid("--to-time " + options.to_text + " is before --from " + options.from_text);
  }
  if (options.recording == "-" && reads_stdin(options.sources)) {
    return invalid("standard input can be a source only once");
  }
  for (const Source& source : options.sources) {
    const bool may_be = source.as == Source::As::any || source.as == Source::As::path;
    if (!may_be) continue;
    const auto refused = refuse_recording(
        source.text, "whose names do not fit another recording (--baseline compares recordings)");
    if (refused) return Failure(*refused);
  }
  return check_directories({options.map_dir, options.symfs});
}

void add_profile(CommandOptions& command, RecordedStacksOptions& options,
                 const std::function<bool(const std::string&)>& take_more) {
  options.stacks.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  const auto take_recording = [&options, take_more](const std::string& text) {
    if (!options.recording.empty()) return take_more(text);
    options.recording = text;
    return true;
  };
  add_sources(command, options.sources,
              {.name = "recording",
               .type = kFile,
               .help = "A recording of perf record, a pprof profile, or '-'. Further arguments are "
                       "further recordings and profiles, or maps and jitdumps, which are used for "
                       "all processes",
               .take_other = take_recording,
               .with_pid = false});
}

void add_frame_names(CommandOptions& command, StackOptions& stacks) {
  add_no_demangle(command, stacks.demangle);
  command.flag("!--no-kernel", stacks.kernel, "Omit kernel frames");
}

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

/// perf prints microseconds and cuts off the rest. So a span ends with the last nanosecond that is
/// printed like `text`.
constexpr std::size_t kNanoseconds = 9;
constexpr std::size_t kMicroseconds = 6;

}  // namespace

void add_filters(CommandOptions& command, RecordedStacksOptions& options) {
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

Option add_private_sources(CommandOptions& command, RecordedStacksOptions& options) {
  return command.flag("--private-sources", options.private_sources,
                      "Also show source files that other users cannot read (html)");
}

void add_unwinding(CommandOptions& command, StackOptions& stacks) {
  command
      .value(
          "--max-stack",
          [&stacks](const std::string& frames) {
            stacks.unwind.max_frames = stacks.max_chain = static_cast<unsigned>(std::stoul(frames));
          },
          "N", "Use at most N frames of a stack (default: 1024, and all of a callchain)")
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

void add_files(CommandOptions& command, RecordedStacksOptions& options) {
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

}  // namespace perfmap::app
