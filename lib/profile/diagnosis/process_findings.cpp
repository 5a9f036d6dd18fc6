#include <algorithm>

#include "diagnosis/recording_findings.hpp"
#include "perfmap/recorded_jit.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kFirstPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO

/// Findings about one process.
class ProcessAdvice {
 public:
  ProcessAdvice(const RecordingCase& recording, const RecordingDiagnosis& diagnosis,
                const RecordedProcessState& process, RecordingAdvice& advice)
      : recording_(recording),
        process_(process),
        recorded_(recording.views.at(process.counts.pid)),
        advice_(advice),
        total_(diagnosis.total.samples),
        options_{recording.context.options.roots, recording.context.options.reader},
        facts_{recorded_.view, options_, recorded_.found} {
    facts_.asked = flags_of(recorded_.found.runtime, recorded_.view);
    facts_.knows_arguments = recorded_.knows_arguments;
    facts_.is_gone = !recorded_.is_alive;
    facts_.subject = shell_word(recording.context.path);
  }

  void add() {
    wants_stacks_ = process_.ends_in_jit != 0 && !facts_.asked.frame_pointers;
    if (add_foreign()) {
      // Then nothing else is the cause.
    } else if (process_.unnamed_jit != 0) {
      add_names();
    } else if (concerns() && !is_any_used() && matters(process_.counts.samples, total_)) {
      add_causes({}, Severity::warning);
    }
    add_damage();
    add_ignored();
    add_stack_finding();
    add_interpreted_frames();
  }

 private:
  bool concerns() const noexcept {
    return recorded_.found.runtime != HostRuntime::unknown && recorded_.found.is_the_program &&
           process_.jit_frames == 0;
  }
  /// It was not told to name its code.
  bool lacks_flags() const noexcept {
    return process_.unnamed_jit != 0 && !is_any_used() && facts_.asked.map_by.empty() &&
           facts_.asked.dump_by.empty();
  }
  bool is_any_used() const noexcept {
    return std::any_of(process_.looked_for.begin(), process_.looked_for.end(),
                       [](const LookedFor& one) { return one.fate == FileFate::used; });
  }

  void add_names() {
    const Severity severity =
        matters(process_.unnamed_jit, process_.jit_frames) ? Severity::warning : Severity::info;
    const std::string counts = counts_text();
    if (add_unmarked(counts, severity)) return;
    const bool is_all = process_.unnamed_jit == process_.jit_frames;
    if (is_all && add_causes(counts + ": ", severity)) return;
    const bool is_java = process_.runtime == HostRuntime::jvm && recorded_.is_alive;
    advice_.add(
        "unnamed-jit", severity,
        counts + (is_any_used() ? ", although the map or jitdump that was found names others" : ""),
        is_java ? jcmd_command(facts_) : "", process_.counts.pid);
  }

  std::string counts_text() const {
    return std::to_string(process_.unnamed_jit) + " of " + std::to_string(process_.jit_frames) +
           " frames of code that " + std::string(title_of(process_.runtime)) + " made in " +
           process_title(process_) + " have no name (" +
           percent_text(process_.unnamed_jit, process_.jit_frames) + ")";
  }

  /// One finding for all files of the process that belong to another user.
  bool add_foreign() {
    const RecordedRefusals* const refused = recording_.context.options.refused;
    if (refused == nullptr) return false;
    std::string files;
    for (const ForeignFile& file : refused->foreign) {
      if (!uses_files_of(process_, file.pid)) continue;
      files += (files.empty() ? "" : "; ") + visible(file.path) + " belongs to user " +
               std::to_string(file.owner) + " and was not used: " + visible(file.why);
    }
    if (files.empty()) return false;
    const std::string before = process_.unnamed_jit == 0 ? process_title(process_) : counts_text();
    advice_.add("foreign-owner", Severity::warning, before + ": " + files,
                "perfmap stacks --any-owner " + facts_.subject, process_.counts.pid);
    return true;
  }

  /// A dump that nothing shows to be the process's is not used unasked.
  bool add_unmarked(const std::string& counts, Severity severity) {
    for (const LookedFor& file : process_.looked_for) {
      if (!file.is_dump || file.has_marker || file.fate != FileFate::shadowed) continue;
      advice_.add("no-marker", severity, counts + ": " + visible(file.our_path) + ": " + file.why,
                  "perfmap stacks --jitdump " + shell_word(file.our_path) + " " + facts_.subject,
                  process_.counts.pid);
      return true;
    }
    return false;
  }

  /// As the live doctor finds them; false: it finds none.
  bool add_causes(const std::string& before, Severity least) {
    Diagnosis live;
    live.pid = process_.counts.pid;
    live.runtime = process_.runtime;
    live.looked_for = process_.looked_for;
    live.memory = process_.memory;
    if (process_.jit_frames != 0 && live.memory.regions == 0) live.memory.regions = 1;
    live.memory.named_bytes = 0;  // none of what was sampled
    add_name_findings(facts_, live);
    for (DoctorFinding& finding : live.findings) {
      const std::string message =
          (before.empty() ? process_title(process_) + ": " : before) + finding.message;
      const Severity severity = least == Severity::info ? least : std::max(finding.severity, least);
      const bool is_of_runtime =
          finding.id == "no-map" || finding.id == "lost-map" || finding.id == "too-old";
      if (is_of_runtime) {
        add_runtime_fix(finding.id, severity, message + where_text(), std::move(finding.fix));
      } else {
        advice_.add(finding.id, severity, message, std::move(finding.fix), process_.counts.pid);
      }
    }
    return !live.findings.empty();
  }

  /// Where the files of a process in a container were.
  std::string where_text() const {
    const RecordedProcess& process = recording_.context.samples.processes.at(process_.counts.pid);
    const bool is_inside =
        process.pid_namespace != 0 && process.pid_namespace != kFirstPidNamespace;
    if (recorded_.is_alive || !is_inside) return {};
    return "; it ran in a container, whose own /tmp has the file by its pid there ('perfmap "
           "snapshot PID DIR' keeps it while the process lives)";
  }

  /// How the runtime is started so that it names its code: by perf, or by hand.
  void add_runtime_fix(std::string_view id, Severity severity, const std::string& message,
                       std::string live_fix) {
    const pid_t pid = process_.counts.pid;
    const bool was_asked = id == "lost-map";
    if (const auto change = change_of_start(!was_asked)) {
      advice_.add_change(id, severity, message, *change, pid);
    } else if (recorded_.is_alive) {
      advice_.add(id, severity, message, std::move(live_fix), pid);
    } else {
      const std::vector<std::string> variables = naming_variables(process_.runtime);
      std::string fix;
      for (const std::string& one : was_asked ? std::vector<std::string>() : variables) {
        const std::size_t value = one.find('=') + 1;
        fix += (fix.empty() ? "export " : " ") + one.substr(0, value) +
               shell_word(std::string_view(one).substr(value));
      }
      const std::string how = fix.empty() ? "" : "; set this where it is started, and record again";
      advice_.add(id, severity, message + how, fix, pid);
    }
  }

  /// Nothing where perf did not start the process, so that the command line is not perf's to
  /// change; and where the process can be asked while it lives.
  std::optional<RecordingAdvice::Change> change_of_start(bool wants_names) const {
    const RecordingContext& context = recording_.context;
    const bool was_started = context.samples.processes.at(process_.counts.pid).executed != 0;
    const HostRuntime runtime = recorded_.found.runtime;
    if (!context.command || context.command->workload.empty() || !was_started) return std::nullopt;
    if (recorded_.is_alive && runtime == HostRuntime::jvm && wants_names) return std::nullopt;
    const StackFlags flags = wants_stacks_ ? stack_flags(runtime) : StackFlags();
    std::vector<std::string> variables;
    std::vector<std::string> workload = context.command->workload;
    if (recorded_.workload_at && runtime != HostRuntime::luajit && runtime != HostRuntime::erlang) {
      CommandText line = wants_names ? naming_command_line(facts_, process_.memory.regions != 0)
                                     : own_command(recorded_.view);
      for (const std::string& flag : flags.flags) {
        const auto& had = line.inserted;
        const bool is_there = std::find(had.begin(), had.end(), flag) != had.end();
        if (!is_there) line.inserted.push_back(flag);
      }
      workload.resize(*recorded_.workload_at);
      const std::vector<std::string> words = line.words();
      workload.insert(workload.end(), words.begin(), words.end());
      variables = line.environment;
      if (flags.flags.empty()) {
        variables.insert(variables.end(), flags.variables.begin(), flags.variables.end());
      }
    } else {
      if (wants_names) variables = naming_variables(runtime);
      variables.insert(variables.end(), flags.variables.begin(), flags.variables.end());
      if (wants_names && variables.empty()) return std::nullopt;
    }
    return [variables, workload](RecordCommand& command) {
      for (const std::string& one : variables) command.add_variable(one);
      command.workload = workload;
    };
  }

  void add_damage() {
    for (const LookedFor& file : process_.looked_for) {
      const bool is_told =
          file.inherited_from != 0 && recording_.views.contains(file.inherited_from);
      if (file.fate != FileFate::used || file.damage.empty() || is_told) continue;
      advice_.add("damaged-dump", process_.unnamed_jit == 0 ? Severity::info : Severity::warning,
                  damage_text(file), damage_fix(file), process_.counts.pid);
    }
  }

  /// As .NET's memory that is mapped twice.
  void add_ignored() {
    const JitMemory& memory = process_.memory;
    if (memory.ignored_bytes == 0) return;
    advice_.add("perf-ignores-region", Severity::info,
                process_title(process_) + ": " + ignored_text(memory) + "; perfmap does",
                "perfmap stacks --format perf-script " + facts_.subject, process_.counts.pid);
  }

  /// Threads begin in native code: a stack that ends in a runtime's has lost its callers.
  void add_stack_finding() {
    if (process_.ends_in_jit == 0 || is_of_own_stack()) return;
    const Severity severity =
        matters(process_.ends_in_jit, process_.counts.samples) ? Severity::warning : Severity::info;
    const std::string message =
        std::to_string(process_.ends_in_jit) + " of " + std::to_string(process_.counts.samples) +
        " stacks of " + process_title(process_) + " end in code of " +
        std::string(title_of(process_.runtime)) + ", which kept no frame pointers there";
    add_start_fix("frame-pointers", severity, message);
  }

  void add_start_fix(std::string_view id, Severity severity, const std::string& message) {
    const StackFlags flags = stack_flags(recorded_.found.runtime);
    const bool has_fix = wants_stacks_ && !(flags.flags.empty() && flags.variables.empty());
    const auto change = has_fix ? change_of_start(lacks_flags()) : std::nullopt;
    if (change) {
      advice_.add_change(id, severity, message, *change, process_.counts.pid);
      return;
    }
    std::string fix;
    if (has_fix && recorded_.is_alive && recorded_.knows_arguments) {
      CommandText line = own_command(recorded_.view);
      line.inserted = flags.flags;
      if (flags.flags.empty()) line.environment = flags.variables;
      fix = line.text();
    } else if (has_fix) {
      for (const std::string& one : flags.variables) {
        const std::size_t value = one.find('=') + 1;
        fix += "export " + one.substr(0, value) + shell_word(std::string_view(one).substr(value));
      }
    }
    advice_.add(id, severity, message, fix, process_.counts.pid);
  }

  /// Erlang's processes have stacks of their own, which begin in its code; see add_end_findings()
  /// for copied ones. With +JPperf they have frame pointers.
  bool is_of_own_stack() const {
    return recorded_.found.runtime == HostRuntime::erlang &&
           (has_stack_copies(recording_.context.samples) || is_any_used() ||
            !facts_.asked.map_by.empty());
  }

  void add_interpreted_frames() {
    const bool is_known = recorded_.knows_arguments && is_any_used();
    if (recorded_.found.runtime != HostRuntime::node || !is_known) return;
    if (facts_.asked.interpreted_frames || facts_.asked.map_by.empty()) return;
    const std::string message = process_title(process_) + ": " + std::string(kInterpretedFrames);
    if (const auto change = change_of_start(true)) {
      advice_.add_change("interpreted-frames", Severity::info, message, *change,
                         process_.counts.pid);
    } else {
      advice_.add("interpreted-frames", Severity::info, message, naming_command(facts_, true),
                  process_.counts.pid);
    }
  }

  const RecordingCase& recording_;
  const RecordedProcessState& process_;
  const RecordedView& recorded_;
  RecordingAdvice& advice_;
  std::uint64_t total_;
  DoctorOptions options_;
  DoctorCase facts_;
  bool wants_stacks_ = false;
};

}  // namespace

void add_process_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                          RecordingAdvice& advice) {
  for (const RecordedProcessState& process : diagnosis.processes) {
    if (facts.views.contains(process.counts.pid)) {
      ProcessAdvice(facts, diagnosis, process, advice).add();
    }
  }
}

}  // namespace perfmap
