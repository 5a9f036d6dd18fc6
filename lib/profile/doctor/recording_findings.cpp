// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <linux/perf_event.h>
#include <map>
#include <set>
#include <unistd.h>

#include "base/machines.hpp"
#include "doctor/recording.hpp"
#include "stacks/recorded_processes.hpp"

namespace perfmap {
namespace {

// How perf was called, and what it lost.

constexpr std::uint32_t kLargestStack = 65528;  // perf's maximum

bool any_event_has(const RecordedSamples& samples, std::uint64_t bits) noexcept {
  return std::any_of(samples.events.begin(), samples.events.end(),
                     [bits](const RecordedEvent& e) { return (e.sample_type & bits) != 0; });
}

bool has_stacks(const RecordedSamples& samples) noexcept {
  return any_event_has(samples, kUserStack | kCallchain);
}

void copy_stacks(RecordCommand& command) {
  command.set_call_graph(RecordCommand::kCopies);
  command.set(RecordCommand::kClock, "mono");
}

/// A few stacks go astray even if the program has frame pointers: libraries may have none.
void check_frame_pointers(const RecordingCase& facts, RecordingAdvice& advice) {
  const std::uint64_t total = facts.statistics.total.samples;
  if (!matters(facts.astray, total)) return;
  const bool is_most = facts.astray * 4 >= total;
  advice.add_change(
      "no-frame-pointers", is_most ? Severity::warning : Severity::info,
      concat(facts.astray, " of ", total, " stacks (", percent_text(facts.astray, total),
             ") contain addresses that are not code: the kernel followed frame pointers (-g), and ",
             is_most ? "the program" : "some code", " has none"),
      copy_stacks);
}

/// Whether samples of the event come while a thread runs: cycles, cpu-clock and task-clock.
bool counts_time(const RecordedEvent& event) noexcept {
  return event.config <= (event.type == PERF_TYPE_SOFTWARE ? PERF_COUNT_SW_TASK_CLOCK : 0) &&
         (event.type == PERF_TYPE_HARDWARE || event.type == PERF_TYPE_SOFTWARE);
}

void check_samples(const RecordingCase& facts, RecordingAdvice& advice) {
  if (facts.statistics.total.samples != 0) return;
  if (facts.statistics.traces != 0) {
    advice.add("hardware-trace", Severity::warning,
               "the recording has no samples but a trace of the processor (such as Intel PT or ARM "
               "SPE), which perfmap does not decode: perf inject --itrace=i100us makes samples of "
               "it");
    return;
  }
  const auto& events = facts.context.samples.events;
  const bool is_time = std::ranges::all_of(events, counts_time);
  std::string names;
  for (const RecordedEvent& event : events)
    names += (names.empty() ? "" : ", ") + visible(event.name);
  advice.add("no-samples", Severity::warning,
             is_time
                 ? "the recording has no samples, because what was recorded used almost no "
                   "processor time: record for longer, or where it waits (perfmap record "
                   "--off-cpu)"
                 : "the recording has no samples, because " + names +
                       " did not occur, or too rarely: record for longer, or another event (-e)");
}

void check_stacks(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordedSamples& samples = facts.context.samples;
  if (facts.statistics.total.samples == 0) return;
  if (!has_stacks(samples)) {
    advice.add_change("no-stacks", Severity::warning, "the samples have addresses but no stacks",
                      copy_stacks);
    return;
  }
  check_frame_pointers(facts, advice);
  const StackCounts& total = facts.statistics.total;
  const std::uint64_t all_cut = total.ends[static_cast<std::size_t>(StackEnd::truncated)];
  const std::uint64_t cut = all_cut - std::min(all_cut, facts.unreadable);
  if (facts.unreadable != 0) {
    advice.add("cut-stacks", Severity::info,
               concat(facts.unreadable, " of ", total.samples, " stacks (",
                      percent_text(facts.unreadable, total.samples),
                      ") are truncated, because the kernel could not read the rest of the stack"));
  }
  if (cut == 0) return;
  std::uint32_t copied = 0;
  for (const RecordedEvent& event : samples.events) copied = std::max(copied, event.user_stack);
  const std::uint32_t size = sufficient_stack_size(copied, cut, total.samples);
  const Severity severity = severity_of(cut, total.samples);
  const std::string message =
      concat(cut, " of ", total.samples, " stacks (", percent_text(cut, total.samples),
             ") are truncated, because perf copied only ", copied, " bytes");
  if (size == 0) {
    advice.add("cut-stacks", severity, message,
               "perfmap stacks --stitch " + arguments_for_reading(facts.context));
  } else {
    advice.add_change("cut-stacks", severity, message, [size](RecordCommand& command) {
      command.set_call_graph("dwarf," + std::to_string(size));
    });
  }
}

void check_clock(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordedSamples& samples = facts.context.samples;
  if (samples.markers.empty() || samples.is_monotonic()) return;
  advice.add_change("clock", Severity::error,
                    concat("process ", samples.markers.front().pid, " wrote the jitdump ",
                           visible(samples.markers.front().path),
                           ", but the recording uses another clock: perf inject fails, and code "
                           "may get wrong names"),
                    [](RecordCommand& command) { command.set(RecordCommand::kClock, "mono"); });
}

void check_losses(const RecordingCase& facts, RecordingAdvice& advice) {
  const StackStatistics& statistics = facts.statistics;
  if (facts.context.samples.facts.was_killed) {
    advice.add("killed", Severity::warning,
               "perf did not finish the recording, so data that it had not yet written is missing, "
               "such as build IDs");
  }
  if (statistics.lost_bytes != 0) {
    advice.add("damaged", Severity::warning,
               std::to_string(statistics.lost_bytes) +
                   " bytes of the recording are malformed and left out");
  }
  if (statistics.lost == 0) return;
  const auto& events = facts.context.samples.events;
  const auto frequency = std::find_if(events.begin(), events.end(), [](const RecordedEvent& one) {
    return one.is_frequency && one.period > 1;
  });
  // Other users than root may lock only half a MiB.
  const bool may_lock = facts.context.options.reader == 0 || frequency == events.end();
  const std::uint64_t half = may_lock ? 0 : frequency->period / 2;
  advice.add_change(
      "lost-events", severity_of(statistics.lost, statistics.total.samples),
      concat("perf lost ", statistics.lost, " events, and mappings may be among them"),
      [half](RecordCommand& command) {
        half == 0 ? command.set(RecordCommand::kPages, "16M")
                  : command.set(RecordCommand::kFrequency, std::to_string(half));
      });
}

void check_build_ids(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordingFacts& recording = facts.context.samples.facts;
  if (recording.was_killed || recording.is_pipe || !recording.build_ids.empty()) return;
  const auto& events = facts.context.samples.events;
  if (std::any_of(events.begin(), events.end(), [](const auto& e) { return e.has_build_ids; })) {
    return;
  }
  advice.add_change(
      "no-build-ids", Severity::info,
      "the recording has no build IDs, so files that were replaced later are not detected",
      [](RecordCommand& command) {
        command.remove({'B', "no-buildid"});
        command.set({0, "buildid-mmap"});
      });
}

// The command that repeats the recording here.

/// A regular expression for pgrep(1) that matches exactly that name.
std::string pattern_of(std::string_view comm) {
  std::string pattern;
  for (const char c : comm) {
    if (std::string_view(".[]()*+?{}|^$\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// The process with the most samples; those with recorded name and begin take precedence.
const RecordedProcessState* busiest(const RecordingCase& facts,
                                    const RecordingDiagnosis& diagnosis) noexcept {
  const auto rank = [&](const RecordedProcessState& one) {
    const RecordedProcess* const process = facts.context.samples.process(one.counts.pid);
    const bool is_known = process != nullptr && !process->began_unseen && !one.counts.comm.empty();
    return std::pair(is_known, one.counts.samples);
  };
  const auto max = std::ranges::max_element(diagnosis.processes, {}, rank);
  return max == diagnosis.processes.end() ? nullptr : &*max;
}

/// Reconstructs a command if the recording has none.
RecordCommand command_of_events(const RecordedSamples& samples) {
  RecordCommand command;
  std::uint32_t copied = 0;
  for (const RecordedEvent& event : samples.events) copied = std::max(copied, event.user_stack);
  if (copied != 0) {
    command.set_call_graph("dwarf," + std::to_string(copied));
  } else if (has_stacks(samples)) {
    command.set_call_graph("");
  }
  command.workload = {"sleep", "10"};
  return command;
}

bool lives(std::string_view pids, const RecordingCase& facts) {
  while (!pids.empty()) {
    const std::size_t end = std::min(pids.find(','), pids.size());
    const int pid = std::atoi(std::string(pids.substr(0, end)).c_str());
    const auto view = facts.views.find(pid);
    const bool is_there = view != facts.views.end()
                              ? view->second.is_alive
                              : process_lives(pid, facts.context.options.roots);
    if (!is_there) return false;
    pids.remove_prefix(std::min(pids.size(), end + 1));
  }
  return true;
}

// Symbols.

constexpr std::size_t kMaxFiles = 8;  // listed by name

/// "/usr/lib/libx.so (12), /usr/lib/liby.so (3) and 2 more"
std::string list_of(const std::vector<StrippedFile>& files) {
  std::vector<std::string> texts;
  for (const StrippedFile& file : files) {
    texts.push_back(concat(visible(file.path), " (", file.unnamed, ")"));
  }
  return list_text(texts, kMaxFiles);
}

/// Servers that the reader has configured stay.
std::string ask_servers(const RecordingContext& context) {
  return "DEBUGINFOD_URLS=\"${DEBUGINFOD_URLS:-https://debuginfod.elfutils.org/}\" "
         "perfmap stacks --debuginfod " +
         arguments_for_reading(context);
}

struct DebuginfodAdvice {
  std::string condition;  ///< in parentheses; empty: servers can be asked
  std::string fix;        ///< empty: this perfmap can load no library
};

DebuginfodAdvice debuginfod_advice(const RecordingContext& context) {
  const auto& check = context.options.check_debuginfod;
  const Result<void> usable =
      check ? check() : Result<void>(Failure(Error::not_found("no libdebuginfod")));
  if (usable) return {"", ask_servers(context)};
  if (usable.error().code != Errc::not_found) return {" (" + usable.error().message() + ")", ""};
  const std::string sudo = context.options.reader == 0 ? "" : "sudo ";
  return {
      " (perfmap needs libdebuginfod, on Debian the package libdebuginfod1)",
      sudo + "apt-get install --no-install-recommends libdebuginfod1 && " + ask_servers(context)};
}

/// Whether the file is one of a distribution's packages.
bool is_packaged(const StrippedFile& file) {
  if (file.path.starts_with("/usr/local/")) return false;
  return std::ranges::any_of(std::array{"/usr/", "/lib", "/bin/", "/sbin/"},
                             [&](const char* one) { return file.path.starts_with(one); });
}

// Stacks that end early.

/// As arguments_for_reading(), with that --symfs.
std::string arguments_with(const std::string& symfs, const RecordingContext& context) {
  const RecordingDoctorOptions& options = context.options;
  const std::string& maps = options.snapshot.empty() ? options.map_dir : options.snapshot;
  std::string text;
  if (!symfs.empty()) text += "--symfs " + shell_word(symfs) + " ";
  const bool is_known = options.shown_map_dir == context.path;
  const bool is_own = options.is_own_map_dir && !maps.empty();
  if (!maps.empty() && !is_known && !is_own) text += "--map-dir " + shell_word(maps) + " ";
  if (options.any_owner) text += "--any-owner ";
  return text + shell_word(is_own ? maps : context.path);
}

/// A command line that fetches the ELF files of a recording's processes from the machine that made
/// it, and examines the recording with them; empty if it would be too long to paste. It fetches all
/// files, because --symfs applies to all.
std::string fetch_command(const RecordingContext& context) {
  constexpr std::size_t kMaxText = 8000;
  constexpr std::size_t kMaxRegions = std::size_t{1} << 18;  // forks give each process all of them
  std::size_t regions = 0;
  std::set<std::string> files;
  for (const auto& [pid, process] : context.samples.processes) {
    if (process.memory == nullptr) continue;
    regions += process.memory->regions().size();
    if (regions > kMaxRegions) return {};
    for (const Region& region : process.memory->regions()) {
      const bool is_path = region.file->is_file() && region.file->name.starts_with('/');
      if (region.access.execute && is_path) files.insert(region.file->name);
    }
  }
  std::string text;
  for (const std::string& file : files) {
    // Quoted twice: for the shell here, and for the remote one.
    text += " " + shell_word(shell_word(std::string_view(file).substr(1)));
    if (text.size() > kMaxText) return {};
  }
  const std::string& given = context.options.symfs;
  const std::string fetched = given.empty() ? context.path + ".symfs" : given;
  const std::string directory = shell_word(fetched);
  return "mkdir -p " + directory + " && ssh " + shell_word(context.samples.facts.hostname) +
         " tar -C / --ignore-failed-read -chf -" + text + " | tar -C " + directory +
         " -xf - && perfmap doctor " + arguments_with(fetched, context);
}

/// Why stacks end in a module, as far as names show.
struct EndCause {
  bool (*is)(const EndedStacks& ends);
  std::string_view why;  ///< goes on after "… end in MODULE", and says what to do; empty: no file
  bool can_scan = true;  ///< a scan of the stack (--scan) can find the callers
  std::string_view finding = "early-ends";
  Severity severity = Severity::warning;
};

/// The first match counts.
constexpr EndCause kEndCauses[] = {
    {[](const EndedStacks& ends) { return ends.kind == FrameKind::unknown; }, {}},
    // Boost.Context's assembly that suspends and resumes a fiber.
    {[](const EndedStacks& ends) {
       return ends.function == "jump_fcontext" || ends.function == "ontop_fcontext";
     },
     ", where assembly without unwinding information switches fibers (Boost.Context)"},
    // Its assembly in which a fiber begins.
    {[](const EndedStacks& ends) { return begins_fiber(ends.function, ends.module); },
     ", where fibers (Boost.Context) begin. No caller is missing: a fiber has its own stack, so "
     "the stack of the code that resumed the fiber is another one. No action is needed",
     false, "fibers", Severity::info},
    // Names generated by GHC: Main_work_info, stg_ap_pp_fast, base_GHCziBase_map_info.
    {[](const EndedStacks& ends) {
       const std::string_view function = ends.function;
       return function.starts_with("stg_") || function.ends_with("_info") ||
              function.ends_with("_info_itable");
     },
     ": Haskell code has its stack in the heap, which perf does not copy, and has no frame "
     "pointers, so no option of perf or ghc shows its callers. The sampled functions are correct. "
     "GHC's own profiler shows callers: compile with 'ghc -prof -fprof-auto', and run the program "
     "with '+RTS -p'",
     false},
    {[](const EndedStacks& ends) {
       return base_name(ends.module).starts_with("ld-musl") ||
              ends.module.find("-musl/") != std::string::npos;
     },
     ": musl has no unwinding information without its debug symbols (Alpine: apk add musl-dbg)"},
    {[](const EndedStacks& ends) { return ends.no_info >= ends.bad_memory; },
     ", which has no unwinding information for that code: compile it with "
     "-fasynchronous-unwind-tables, or install its debug symbols"},
    {[](const EndedStacks&) { return true; },
     ", whose unwinding information leads out of the stack there, as in assembly and in code that "
     "switches stacks"},
};

/// Why callers are on another stack than the one that was copied, by the last function.
struct OtherStackCause {
  bool (*is)(std::string_view function);
  std::string_view why;  ///< goes on after "… end "
};

/// The first match counts. The kernel follows frame pointers from one stack to the other.
constexpr OtherStackCause kOtherStackCauses[] = {
    {[](std::string_view function) {
       return function.starts_with("runtime.") || function.starts_with("time.");
     },
     "where Go's runtime switched from a goroutine's stack to another one, and perf copied only "
     "the second; Go keeps frame pointers, so the kernel can walk both (-g)"},
    {[](std::string_view) { return true; },
     "in code that a signal handler with its own stack (sigaltstack) interrupted, and perf copied "
     "only the handler's stack; the kernel can walk both (-g) if the program was compiled with "
     "-fno-omit-frame-pointer"},
};

constexpr std::size_t kMaxModules = 8;  // listed by name

/// A module in which stacks of one or more processes end.
struct EndedModule {
  EndedStacks ends;
  const EndCause* cause;
  pid_t pid;  ///< 0: several

  bool is_missing() const noexcept { return cause->why.empty(); }
};

class EndAdvice {
 public:
  EndAdvice(const RecordingCase& recording, const RecordingDiagnosis& diagnosis,
            RecordingAdvice& advice)
      : recording_(recording), diagnosis_(diagnosis), advice_(advice) {}

  void add() {
    const std::size_t before = diagnosis_.findings.size();
    add_all();
    if (diagnosis_.findings.size() == before && all_end_early()) {
      advice_.add("early-ends", Severity::warning,
                  of_all(total()) + " end early for an unknown reason");
    }
  }

 private:
  void add_all() {
    collect();
    add_not_unwound();
    add_own_stacks();
    add_own_stack_calls();
    add_other_stacks();
    add_unseen();
    add_missing();
    std::uint64_t rest = 0;
    std::size_t named = 0;
    for (const EndedModule& module : modules_) {
      if (module.is_missing()) continue;
      if (!matters(module.ends.count(), total()) || named == kMaxModules) {
        rest += module.ends.count();
        continue;
      }
      ++named;
      add_module(module);
    }
    if (!matters(rest, total())) return;
    advice_.add("early-ends", Severity::warning,
                of_all(rest) + " end early in other files, each with less than 1 %",
                scan_command());
  }

  /// Not counting those that end in code of runtimes: these have other findings, or are complete.
  bool all_end_early() const {
    const auto& ends = diagnosis_.total.ends;
    const std::uint64_t early = ends[static_cast<std::size_t>(StackEnd::no_info)] +
                                ends[static_cast<std::size_t>(StackEnd::bad_memory)];
    const bool has_jit = std::ranges::any_of(diagnosis_.processes, [](const auto& process) {
      return std::ranges::any_of(process.ended, [](const EndedStacks& ends_in) {
        return ends_in.kind == FrameKind::jit && ends_in.count() != 0;
      });
    });
    return total() != 0 && early == total() && !has_jit;
  }

  std::uint64_t total() const noexcept { return diagnosis_.total.samples; }
  std::string scan_command() const {
    return "perfmap stacks --scan " + arguments_for_reading(recording_.context);
  }
  std::string of_all(std::uint64_t count) const {
    return concat(count, " of ", total(), " stacks (", percent_text(count, total()), ")");
  }

  /// For a process whose runtime allocates its own stacks, which are not copied.
  bool has_own_stacks(pid_t pid) const {
    const auto view = recording_.views.find(pid);
    return view != recording_.views.end() &&
           runtime_info(view->second.found.runtime).stacks.has_own_stacks() &&
           has_stack_copies(recording_.context.samples);
  }

  void collect() {
    for (const RecordedProcessState& process : diagnosis_.processes) {
      const bool own = has_own_stacks(process.counts.pid);
      // Its stacks have a separate finding.
      if (process.counts.not_unwound != 0) continue;
      const bool is_named = process.unnamed_jit == 0;
      for (const EndedStacks& ends : process.ended) {
        if (own) {
          own_stacks_ = &runtime_info(recording_.views.at(process.counts.pid).found.runtime);
          // Code with names has frame pointers: stacks that end in it are complete, except for
          // those of C functions.
          if (is_named && ends.kind == FrameKind::jit) {
            own_stack_calls_ += ends.other_stack;
            continue;
          }
          own_stack_ends_ += ends.count() + ends.other_stack;
          own_stack_pid_ = process.counts.pid;
          continue;
        }
        take_other_stack(ends, process.counts.pid);
        if (ends.kind == FrameKind::jit || ends.kind == FrameKind::kernel || ends.count() == 0)
          continue;
        const bool is_unseen = ends.kind == FrameKind::unknown && ends.module.empty() &&
                               recording_.context.samples.began_unseen(process.counts.pid);
        is_unseen ? void(unseen_ += ends.count()) : take(ends, process.counts.pid);
      }
    }
    std::stable_sort(
        modules_.begin(), modules_.end(),
        [](const EndedModule& a, const EndedModule& b) { return a.ends.count() > b.ends.count(); });
  }

  /// Without known code, --scan has nothing to search for.
  void add_unseen() {
    if (unseen_ == 0) return;
    advice_.add("early-ends", severity_of(unseen_, total()),
                of_all(unseen_) +
                    " end in processes that started together with perf, so the recording does not "
                    "have their mappings; record again");
  }

  void take_other_stack(const EndedStacks& ends, pid_t pid) {
    if (ends.other_stack == 0) return;
    const auto is_it = [&](const OtherStackCause& one) { return one.is(ends.function); };
    OtherStacks& found = other_stacks_[std::ranges::find_if(kOtherStackCauses, is_it)];
    found.pid = found.count == 0 || found.pid == pid ? pid : 0;
    found.count += ends.other_stack;
  }

  void add_other_stacks() {
    for (const auto& [cause, found] : other_stacks_) {
      if (!matters(found.count, total())) continue;
      add_frame_pointers(
          "other-stack", found.count, concat(of_all(found.count), " end ", cause->why),
          [](RecordCommand& command) { command.set_call_graph(""); }, found.pid);
    }
  }

  void take(const EndedStacks& ends, pid_t pid) {
    const auto [place, is_new] = places_.try_emplace({ends.module, ends.kind}, modules_.size());
    if (is_new) {
      const auto is_it = [&](const EndCause& one) { return one.is(ends); };
      modules_.push_back({ends, std::ranges::find_if(kEndCauses, is_it), pid});
      return;
    }
    EndedModule* const known = &modules_[place->second];
    known->ends.no_info += ends.no_info;
    known->ends.bad_memory += ends.bad_memory;
    known->ends.fiber_roots += ends.fiber_roots;
    known->ends.alone += ends.alone;
    known->pid = known->pid == pid ? pid : 0;
  }

  void add_not_unwound() {
    if (!has_stack_copies(recording_.context.samples)) return;
    std::uint64_t count = 0;
    pid_t pid = 0;
    for (const RecordedProcessState& process : diagnosis_.processes) {
      count += process.counts.not_unwound;
      if (process.counts.not_unwound != 0) pid = pid == 0 ? process.counts.pid : -1;
    }
    if (count == 0) return;
    const std::string& arch = recording_.context.samples.facts.arch;
    const MachineInfo* const machine = find_machine(arch);
    const bool is_known = machine != nullptr && !machine->kernel_walks.empty();
    add_frame_pointers(
        "not-unwound", count,
        concat(
            of_all(count),
            " have one frame, because perfmap cannot unwind stacks of this machine (",
            arch.empty() ? "unknown" : visible(arch), "); the kernel ",
            is_known ? concat("walks stacks (-g)", machine->kernel_walks) : "may walk them (-g)"),
        [](RecordCommand& command) { command.set_call_graph(""); }, std::max(pid, 0));
  }

  /// -g is worse than copies for all code without frame pointers.
  void add_frame_pointers(std::string_view id, std::uint64_t count, const std::string& message,
                          const RecordingAdvice::Change& change, pid_t pid) {
    const Severity severity = severity_of(count, total());
    if (count * 2 >= total()) {
      advice_.add_change(id, severity, message, change, pid);
    } else {
      advice_.add_own_change(id, severity, message, change, pid);
    }
  }

  /// No command fixes this: the kernel (-g) goes astray in C code without frame pointers.
  void add_own_stack_calls() {
    if (!matters(own_stack_calls_, total())) return;
    advice_.add("own-stack", Severity::info,
                of_all(own_stack_calls_) + std::string(own_stacks_->stacks.own_stack_calls));
  }

  /// Code that runs on stacks of its own, which --call-graph dwarf does not copy.
  void add_own_stacks() {
    if (own_stack_ends_ == 0) return;
    const RuntimeInfo& runtime = *own_stacks_;
    const StartFlags asked = start_flags(runtime.runtime, recording_.views.at(own_stack_pid_).view);
    const bool is_told = !asked.map_by.empty() || !asked.dump_by.empty();
    add_frame_pointers(
        "own-stack", own_stack_ends_,
        of_all(own_stack_ends_) + std::string(runtime.stacks.own_stack_message),
        [is_told, &maps = runtime.maps](RecordCommand& command) {
          command.set_call_graph("");
          if (is_told) return;
          for (const std::string_view one : maps.naming_variables) {
            command.add_variable(std::string(one));
          }
          if (maps.writes_dump_too) command.set(RecordCommand::kClock, "mono");
        },
        own_stack_pid_);
  }

  /// Stacks that end in files that are not readable here.
  void add_missing() {
    std::uint64_t ended = 0;
    std::vector<std::string> files;
    for (const EndedModule& module : modules_) {
      if (!module.is_missing()) continue;
      ended += module.ends.count();
      if (module.ends.module.starts_with('/')) files.push_back(visible(module.ends.module));
    }
    if (ended == 0) return;
    if (files.empty()) {
      if (!matters(ended, total())) return;
      advice_.add("early-ends", Severity::warning,
                  of_all(ended) + " end at addresses without a known mapping", scan_command());
      return;
    }
    const Severity severity = severity_of(ended, total());
    const std::string message =
        of_all(ended) +
        " end in files that could not be read here, or that have changed: " + list_text(files, 3);
    if (is_of_this_machine(recording_.context.samples)) {
      advice_.add_change("missing-files", severity, message, [](RecordCommand&) {});
    } else {
      advice_.add("missing-files", severity,
                  message + "; the recording was made on " +
                      visible(recording_.context.samples.facts.hostname),
                  fetch_command(recording_.context));
    }
  }

  void add_module(const EndedModule& module) {
    const EndedStacks& ends = module.ends;
    const std::string where = ends.module.empty() ? "unknown memory" : visible(ends.module);
    std::string message = of_all(ends.count()) + " end in " + where;
    if (ends.alone == ends.count()) message += ", and each of these stacks has only one frame";
    const EndCause& cause = *module.cause;
    advice_.add(cause.finding, cause.severity,
                concat(message, cause.why, cause.can_scan ? "; --scan guesses callers" : ""),
                cause.can_scan ? scan_command() : "", module.pid);
  }

  const RecordingCase& recording_;
  const RecordingDiagnosis& diagnosis_;
  RecordingAdvice& advice_;
  std::vector<EndedModule> modules_;
  std::map<std::pair<std::string, FrameKind>, std::size_t> places_;  // in modules_, until sorted
  struct OtherStacks {
    std::uint64_t count = 0;
    pid_t pid = 0;  // 0: several
  };
  std::map<const OtherStackCause*, OtherStacks> other_stacks_;
  std::uint64_t own_stack_ends_ = 0;
  std::uint64_t own_stack_calls_ = 0;  // in C functions, called from code with names
  std::uint64_t unseen_ = 0;
  pid_t own_stack_pid_ = 0;
  const RuntimeInfo* own_stacks_ = nullptr;  // the runtime of both counts
};

/// "250 of 1000 frames outside the kernel (25 %) have no name, because their files WHY: /bin/a
/// (250)"; empty if they do not matter.
std::string text_of_unnamed(const RecordingCase& facts, const std::vector<StrippedFile>& files,
                            std::string_view why) {
  const StackCounts& total = facts.statistics.total;
  // Frames of the kernel are never in a file.
  const std::uint64_t frames =
      total.frames - total.sources[static_cast<std::size_t>(FrameSource::kernel)];
  std::uint64_t count = 0;
  for (const StrippedFile& file : files) count += file.unnamed;
  if (!matters(count, frames)) return {};
  return concat(count, " of ", frames, " frames outside the kernel (", percent_text(count, frames),
                ") have no name, because their files ", why, ": ", list_of(files));
}

}  // namespace

void RecordingAdvice::add(std::string_view id, Severity severity, std::string message,
                          std::string fix, pid_t pid) {
  diagnosis_.findings.push_back({{id, severity, std::move(message), std::move(fix)}, pid});
}

void RecordingAdvice::add_change(std::string_view id, Severity severity, std::string message,
                                 const Change& change, pid_t pid) {
  const bool is_for_all = severity != Severity::info;
  if (is_for_all) change(base_);
  add_own_change(id, severity, std::move(message), is_for_all ? [](RecordCommand&) {} : change,
                 pid);
}

void RecordingAdvice::add_own_change(std::string_view id, Severity severity, std::string message,
                                     const Change& change, pid_t pid) {
  changes_.emplace_back(diagnosis_.findings.size(), change);
  add(id, severity, std::move(message), {}, pid);
}

void RecordingAdvice::finish() {
  for (const auto& [position, change] : changes_) {
    RecordCommand command = base_;
    change(command);
    diagnosis_.findings[position].finding.fix = command.text();
  }
  std::stable_sort(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                   [](const RecordingFinding& a, const RecordingFinding& b) {
                     return a.finding.severity > b.finding.severity;
                   });
}

std::string arguments_for_reading(const RecordingContext& context) {
  return arguments_with(context.options.symfs, context);
}

std::string process_title(const RecordedProcessState& process) {
  return concat("process ", process.counts.pid, " (", visible(process.counts.comm), ")");
}

bool has_stack_copies(const RecordedSamples& samples) noexcept {
  return any_event_has(samples, kUserStack);
}

bool is_of_this_machine(const RecordedSamples& samples) {
  const std::string& host = samples.facts.hostname;
  std::array<char, 256> own = {};
  return host.empty() || ::gethostname(own.data(), own.size() - 1) != 0 || host == own.data();
}

std::uint32_t sufficient_stack_size(std::uint32_t copied, std::uint64_t cut,
                                    std::uint64_t samples) noexcept {
  if (copied >= kLargestStack) return 0;
  const std::uint32_t times = cut * 4 > samples ? 4 : 2;
  const std::uint64_t wanted = std::uint64_t{std::max(copied, 4096U)} * times;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted / 8 * 8, kLargestStack));
}

RecordCommand command_to_repeat(const RecordingCase& facts, const RecordingDiagnosis& diagnosis) {
  const RecordingContext& context = facts.context;
  RecordCommand command = context.command ? *context.command : command_of_events(context.samples);
  if (command.value_of(RecordCommand::kOutput) == "-") command.remove(RecordCommand::kOutput);
  const auto pids = command.value_of(RecordCommand::kPid);
  const RecordedProcessState* const process = busiest(facts, diagnosis);
  if (process != nullptr && (!context.command || (pids && !lives(*pids, facts)))) {
    const std::string pid = std::to_string(process->counts.pid);
    const bool is_named = process->counts.comm != unnamed_comm(process->counts.pid);
    command.set_shell_text(
        RecordCommand::kPid,
        is_named ? "\"$(pgrep -d, -x " + shell_word(pattern_of(process->counts.comm)) + ")\""
                 : pid);
  }
  command.with_sudo = context.is_of_root && context.options.reader != 0;
  return command;
}

void add_recorder_findings(const RecordingCase& facts, RecordingAdvice& advice) {
  for (const auto check :
       {check_samples, check_stacks, check_clock, check_losses, check_build_ids}) {
    check(facts, advice);
  }
}

void add_symbol_findings(const RecordingCase& facts, const std::vector<StrippedFile>& stripped,
                         RecordingAdvice& advice) {
  std::vector<StrippedFile> packaged, own;
  for (const StrippedFile& file : stripped) {
    (is_packaged(file) && file.has_build_id ? packaged : own).push_back(file);
  }
  const auto add = [&](const std::vector<StrippedFile>& files, const std::string& what,
                       const std::string& fix) {
    const std::string text = text_of_unnamed(facts, files, "are stripped");
    if (!text.empty()) advice.add("no-symbols", Severity::warning, text + what, fix);
  };
  add(own, "; use files that are not stripped: link without -s, and do not run strip", "");
  const DebuginfodAdvice servers = debuginfod_advice(facts.context);
  add(packaged,
      "; debuginfod servers have debug files for the packages of most distributions" +
          servers.condition,
      servers.fix);
}

void add_unread_findings(const RecordingCase& facts, const std::vector<StrippedFile>& unread,
                         const RecordingDiagnosis& diagnosis, RecordingAdvice& advice) {
  const bool is_told = std::ranges::any_of(diagnosis.findings, [](const RecordingFinding& one) {
    return one.finding.id == "missing-files";
  });
  const std::string text = text_of_unnamed(facts, unread, "could not be read here");
  if (!is_told && !text.empty()) advice.add("missing-files", Severity::warning, text);
}

void add_part_findings(const OpenedModules& modules, RecordingAdvice& advice) {
  for (const auto& [missing, path] : modules.missing_parts()) {
    advice.add(
        "missing-debug-part", Severity::warning,
        concat(
            "some inlined functions of ", visible(path), " have no name, because ",
            visible(missing),
            " is missing, to which dwz moved a part of the debug information; the package with the "
            "debug information, -dbgsym or -debuginfo, has it"));
  }
}

void add_end_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                      RecordingAdvice& advice) {
  EndAdvice(facts, diagnosis, advice).add();
}

}  // namespace perfmap
