#include <algorithm>
#include <cstdint>
#include <string_view>

#include "diagnosis/process_view.hpp"
#include "diagnosis/recording_findings.hpp"
#include "perfmap/doctor_recording.hpp"

namespace perfmap {
namespace {

/// Why stacks end in a module, as far as names tell.
enum class EndCause : std::uint8_t {
  missing_file,
  fiber_begin,
  fiber_switch,
  haskell,
  musl,
  no_tables,
  astray,
};

/// Boost.Context's assembly in which a fiber begins.
bool is_fiber_begin(const EndedStacks& ends) noexcept {
  return ends.function == "make_fcontext" || ends.function == "trampoline_fcontext" ||
         base_name(ends.module).starts_with("libboost_context");
}

/// And in which it is left and resumed. It has no unwinding information.
bool is_fiber_switch(const EndedStacks& ends) noexcept {
  return ends.function == "jump_fcontext" || ends.function == "ontop_fcontext";
}

/// GHC's names: Main_work_info, stg_ap_pp_fast, base_GHCziBase_map_info.
bool is_haskell(std::string_view function) noexcept {
  return function.starts_with("stg_") || function.ends_with("_info") ||
         function.ends_with("_info_itable");
}

bool is_musl(std::string_view module) noexcept {
  return base_name(module).starts_with("ld-musl") ||
         module.find("-musl/") != std::string_view::npos;
}

EndCause cause_of(const EndedStacks& ends) noexcept {
  if (ends.kind == FrameKind::unknown) return EndCause::missing_file;
  if (is_fiber_switch(ends)) return EndCause::fiber_switch;
  if (is_fiber_begin(ends)) return EndCause::fiber_begin;
  if (is_haskell(ends.function)) return EndCause::haskell;
  if (is_musl(ends.module)) return EndCause::musl;
  return ends.no_info >= ends.bad_memory ? EndCause::no_tables : EndCause::astray;
}

/// Goes on after "… end in MODULE": why, and what to do.
std::string_view explain(EndCause cause) noexcept {
  switch (cause) {
    case EndCause::fiber_begin:
      return ", where fibers (boost.context) begin: no caller is missing, as the code that resumed "
             "the fiber has another stack. Nothing has to be done";
    case EndCause::fiber_switch:
      return ", where fibers (boost.context) are switched, in assembly that has no unwinding "
             "information";
    case EndCause::haskell:
      return ": Haskell code keeps its stack in the heap, which perf does not copy, and has no "
             "frame pointers, so no option of perf or ghc shows its callers. The functions that "
             "were sampled are right. GHC's own profiler knows callers: compile with 'ghc -prof "
             "-fprof-auto', and run the program with '+RTS -p'";
    case EndCause::musl:
      return ": musl has no unwinding information without its debug symbols (Alpine: apk add "
             "musl-dbg)";
    case EndCause::no_tables:
      return ", which has no unwinding information for that code: compile it with "
             "-fasynchronous-unwind-tables, or install its debug symbols";
    case EndCause::astray:
      return ", whose unwinding information leads out of the stack there, as for assembly and "
             "code that switches stacks";
    case EndCause::missing_file: break;
  }
  return {};
}

/// Whether a scan of the stack (--scan) can find the callers.
bool can_scan(EndCause cause) noexcept {
  return cause != EndCause::fiber_begin && cause != EndCause::haskell;
}

constexpr std::size_t kMaxModules = 8;  // that are named one by one

/// A module in which stacks of several processes end.
struct EndedModule {
  EndedStacks ends;
  EndCause cause = EndCause::no_tables;
  pid_t pid = 0;  ///< 0: several
};

class EndAdvice {
 public:
  EndAdvice(const RecordingCase& recording, const RecordingDiagnosis& diagnosis,
            RecordingAdvice& advice)
      : recording_(recording), diagnosis_(diagnosis), advice_(advice) {}

  void add() {
    collect();
    add_narrow();
    add_own_stacks();
    add_own_stack_calls();
    add_unseen();
    add_missing();
    std::uint64_t rest = 0;
    std::size_t named = 0;
    for (const EndedModule& module : modules_) {
      if (module.cause == EndCause::missing_file) continue;
      if (!matters(module.ends.count(), total()) || named == kMaxModules) {
        rest += module.ends.count();
        continue;
      }
      ++named;
      add_module(module);
    }
    if (!matters(rest, total())) return;
    advice_.add("early-ends", Severity::warning,
                of_all(rest) + " end early in other files, none of them in 1 %", scan_command());
  }

 private:
  std::uint64_t total() const noexcept { return diagnosis_.total.samples; }
  std::string path() const { return shell_word(recording_.context.path); }
  std::string scan_command() const { return "perfmap stacks --scan " + path(); }
  std::string of_all(std::uint64_t count) const {
    return std::to_string(count) + " of " + std::to_string(total()) + " stacks (" +
           percent_text(count, total()) + ")";
  }

  /// Of a process whose runtime's stacks are not copied.
  bool has_own_stacks(pid_t pid) const {
    const auto view = recording_.views.find(pid);
    return view != recording_.views.end() &&
           runtime_info(view->second.found.runtime).stacks.has_own_stacks() &&
           has_stack_copies(recording_.context.samples);
  }

  void collect() {
    for (const RecordedProcessState& process : diagnosis_.processes) {
      const bool own = has_own_stacks(process.counts.pid);
      if (is_narrow(process)) continue;
      const bool is_named = process.unnamed_jit == 0;
      for (const EndedStacks& ends : process.ended) {
        if (own) {
          own_stacks_ = &runtime_info(recording_.views.at(process.counts.pid).found.runtime);
          // Where its code has names it has frame pointers: stacks that end in it are whole, but
          // for those of functions in C.
          if (is_named && ends.kind == FrameKind::jit) {
            own_stack_calls_ += ends.in_calls_of_c;
            continue;
          }
          own_stack_ends_ += ends.count();
          own_stack_pid_ = process.counts.pid;
          continue;
        }
        if (ends.kind == FrameKind::jit || ends.kind == FrameKind::kernel) continue;
        const bool is_unseen = ends.kind == FrameKind::unknown && ends.module.empty() &&
                               began_unseen(process.counts.pid);
        is_unseen ? void(unseen_ += ends.count()) : take(ends, process.counts.pid);
      }
    }
    std::stable_sort(
        modules_.begin(), modules_.end(),
        [](const EndedModule& a, const EndedModule& b) { return a.ends.count() > b.ends.count(); });
  }

  bool began_unseen(pid_t pid) const {
    const auto found = recording_.context.samples.processes.find(pid);
    return found != recording_.context.samples.processes.end() && found->second.began_unseen;
  }

  /// Nothing is known that --scan could look for.
  void add_unseen() {
    if (unseen_ == 0) return;
    advice_.add("early-ends", matters(unseen_, total()) ? Severity::warning : Severity::info,
                of_all(unseen_) +
                    " end in processes whose mappings are not in the recording, as they began "
                    "while perf did; record again");
  }

  /// Its stacks have a finding of their own.
  bool is_narrow(const RecordedProcessState& process) const {
    const auto found = recording_.context.samples.processes.find(process.counts.pid);
    return found != recording_.context.samples.processes.end() &&
           found->second.samples_of_32_bit != 0;
  }

  void take(const EndedStacks& ends, pid_t pid) {
    const auto same = [&](const EndedModule& one) {
      return one.ends.module == ends.module && one.ends.kind == ends.kind;
    };
    const auto known = std::find_if(modules_.begin(), modules_.end(), same);
    if (known == modules_.end()) {
      modules_.push_back({ends, cause_of(ends), pid});
      return;
    }
    known->ends.no_info += ends.no_info;
    known->ends.bad_memory += ends.bad_memory;
    known->ends.alone += ends.alone;
    known->pid = known->pid == pid ? pid : 0;
  }

  /// Code of 32 bits: registers are those of another machine.
  void add_narrow() {
    if (!has_stack_copies(recording_.context.samples)) return;
    std::uint64_t count = 0;
    pid_t pid = 0;
    for (const auto& [one, process] : recording_.context.samples.processes) {
      count += process.samples_of_32_bit;
      if (process.samples_of_32_bit != 0) pid = pid == 0 ? one : -1;
    }
    if (count == 0) return;
    add_frame_pointers(
        "not-unwound", count,
        of_all(count) +
            " are of 32-bit code, which perfmap cannot unwind yet, so they have one frame; the "
            "kernel walks stacks (-g) of programs that were compiled with -fno-omit-frame-pointer",
        [](RecordCommand& command) { command.set_call_graph(""); }, std::max(pid, 0));
  }

  /// -g is worse than copies for all that keeps no frame pointers.
  void add_frame_pointers(std::string_view id, std::uint64_t count, const std::string& message,
                          const RecordingAdvice::Change& change, pid_t pid) {
    const Severity severity = matters(count, total()) ? Severity::warning : Severity::info;
    if (count * 2 >= total()) {
      advice_.add_change(id, severity, message, change, pid);
    } else {
      advice_.add_own_change(id, severity, message, change, pid);
    }
  }

  /// No command helps: the kernel (-g) goes astray in C that keeps no frame pointers.
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

  /// Stacks that end in files that cannot be read here.
  void add_missing() {
    std::uint64_t ended = 0;
    std::string names;
    std::size_t files = 0;
    for (const EndedModule& module : modules_) {
      if (module.cause != EndCause::missing_file) continue;
      ended += module.ends.count();
      if (!module.ends.module.starts_with('/')) continue;
      if (++files <= 3) names += (names.empty() ? "" : ", ") + visible(module.ends.module);
    }
    if (ended == 0) return;
    if (files == 0) {
      if (!matters(ended, total())) return;
      advice_.add("early-ends", Severity::warning,
                  of_all(ended) + " end at addresses where nothing is mapped that is known",
                  scan_command());
      return;
    }
    if (files > 3) names += " and " + std::to_string(files - 3) + " more";
    const Severity severity = matters(ended, total()) ? Severity::warning : Severity::info;
    const std::string message = of_all(ended) +
                                " end at code of which nothing is known, in files that " +
                                "could not be read here as they were: " + names;
    if (is_of_this_machine(recording_.context.samples)) {
      advice_.add_change("missing-files", severity, message, [](RecordCommand&) {});
    } else {
      advice_.add(
          "missing-files", severity,
          message + "; the recording is of " + visible(recording_.context.samples.facts.hostname),
          fetch_command(recording_.context));
    }
  }

  void add_module(const EndedModule& module) {
    const EndedStacks& ends = module.ends;
    const std::string where = ends.module.empty() ? "unknown memory" : visible(ends.module);
    std::string message = of_all(ends.count()) + " end in " + where;
    if (ends.alone == ends.count()) message += ", all with that frame alone";
    const bool is_fiber = module.cause == EndCause::fiber_begin;
    const bool can_guess = can_scan(module.cause);
    advice_.add(is_fiber ? "fibers" : "early-ends", is_fiber ? Severity::info : Severity::warning,
                message + std::string(explain(module.cause)) +
                    (can_guess ? "; --scan guesses callers" : ""),
                can_guess ? scan_command() : "", module.pid);
  }

  const RecordingCase& recording_;
  const RecordingDiagnosis& diagnosis_;
  RecordingAdvice& advice_;
  std::vector<EndedModule> modules_;
  std::uint64_t own_stack_ends_ = 0;
  std::uint64_t own_stack_calls_ = 0;  // of C, from code with names
  std::uint64_t unseen_ = 0;
  pid_t own_stack_pid_ = 0;
  const RuntimeInfo* own_stacks_ = nullptr;  // the runtime of both
};

}  // namespace

void add_end_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                      RecordingAdvice& advice) {
  EndAdvice(facts, diagnosis, advice).add();
}

}  // namespace perfmap
