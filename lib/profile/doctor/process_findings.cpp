// SPDX-License-Identifier: MIT
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doctor/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// Whether a workload, which may start other processes with the same flag, asks for this dump.
bool asks_for(const UnwindingDump& dump, const std::vector<std::string>& workload) {
  return std::ranges::find_first_of(workload, dump.words) != workload.end();
}

/// Applies the settings in the words before the program (env NAME=VALUE) as well, and returns the
/// remaining words.
std::vector<std::string> set_in_workload(const std::vector<std::string>& variables,
                                         std::size_t program, std::vector<std::string>& workload) {
  std::vector<std::string> rest;
  const auto end = workload.begin() + static_cast<std::ptrdiff_t>(program);
  for (const std::string& one : variables) {
    const std::string name = one.substr(0, one.find('=') + 1);
    const auto last = std::find_if(std::make_reverse_iterator(end), workload.rend(),
                                   [&](const std::string& word) { return word.starts_with(name); });
    if (last != workload.rend()) {
      *last = one;
    } else {
      rest.push_back(one);
    }
  }
  return rest;
}

std::string export_command(const std::vector<std::string>& variables) {
  std::string line;
  for (const std::string& one : variables) {
    const std::size_t value = one.find('=') + 1;
    line += (line.empty() ? "export " : " ") + one.substr(0, value) +
            shell_word(std::string_view(one).substr(value));
  }
  return line;
}

/// How to start a recorded process so that its code has names, or its stacks have callers.
class StartAdvice {
 public:
  struct Wants {
    bool names = false;
    bool stacks = false;
  };
  /// Borrows all. `has_jit`: the process already has code of its runtime.
  StartAdvice(const RecordingCase& recording, const RecordedView& recorded, const DoctorCase& facts,
              bool has_jit) noexcept
      : recording_(recording), recorded_(recorded), facts_(facts), has_jit_(has_jit) {}

  /// Whether an option of the runtime or of perf keeps its callers.
  bool can_keep_stacks() const {
    const StackFlags flags = stack_flags(facts_);
    return !flags.flags.empty() || !flags.variables.empty() || wants_copies({.stacks = true});
  }

  /// A change of perf's command line. Nothing if that does not affect the process, because perf did
  /// not start it, or if a command to the living process is enough.
  std::optional<RecordingAdvice::Change> change(Wants wants) const {
    const RuntimeInfo& runtime = facts_.runtime();
    if (!is_reached()) return std::nullopt;
    if (recorded_.is_alive && runtime.maps.is_live() && wants.names) return std::nullopt;
    std::vector<std::string> variables;
    std::vector<std::string> workload = recording_.context.command->workload;
    const bool is_started_itself =
        runtime.maps.command != nullptr && runtime.signs.launcher.empty();
    if (recorded_.workload_at && is_started_itself) {
      const CommandLine line = command_line(wants);
      workload.resize(*recorded_.workload_at);
      const std::vector<std::string> words = line.words();
      workload.insert(workload.end(), words.begin(), words.end());
      variables = set_in_workload(line.environment, *recorded_.workload_at, workload);
    } else {
      variables = this->variables(wants);
      if (wants.names && naming_variables(facts_).empty()) return std::nullopt;
    }
    const bool copies = wants_copies(wants);
    const bool makes_dump = copies || (wants.names && runtime.maps.writes_dump_too);
    return [variables, workload, copies, makes_dump](RecordCommand& command) {
      for (const std::string& one : variables) command.add_variable(one);
      command.workload = workload;
      if (copies) command.set_call_graph(RecordCommand::kCopies);
      if (makes_dump) command.set(RecordCommand::kClock, "mono");
    };
  }

  /// "export NAME=VALUE" for a shell that starts it; empty if no variable has that effect.
  std::string exports(Wants wants) const { return export_command(variables(wants)); }

 private:
  /// Environment and workload changes of perf affect the processes that it started.
  bool is_reached() const noexcept {
    const std::optional<RecordCommand>& command = recording_.context.command;
    if (!command || command->workload.empty()) return false;
    if (recorded_.workload_at) return true;
    const bool was_started = recording_.context.samples.was_executed(recorded_.view.pid);
    return was_started && !command->records_others();
  }

  std::vector<std::string> variables(Wants wants) const {
    std::vector<std::string> variables;
    if (wants.names) variables = naming_variables(facts_);
    const std::optional<RecordCommand>& command = recording_.context.command;
    const UnwindingDump& dump = facts_.runtime().stacks.dump;
    // Children of multiprocessing's "spawn" inherit variables, but not -X.
    const bool is_named = dump.exists() && !variables.empty();
    if (is_named && command && asks_for(dump, command->workload)) {
      variables = {std::string(dump.variable)};
    }
    if (!wants.stacks) return variables;
    for (const std::string& one : stack_flags(facts_).variables) {
      const bool is_there = std::find(variables.begin(), variables.end(), one) != variables.end();
      if (!is_there) variables.push_back(one);
    }
    return variables;
  }

  CommandLine command_line(Wants wants) const {
    const StackFlags flags = wants.stacks ? stack_flags(facts_) : StackFlags();
    CommandLine line =
        wants.names ? naming_command_line(facts_, has_jit_) : own_command(recorded_.view);
    // The dump contains the names as well.
    if (facts_.runtime().stacks.dump.exists() && !flags.flags.empty()) line.inserted.clear();
    const auto& had = line.inserted;
    const bool is_there =
        std::search(had.begin(), had.end(), flags.flags.begin(), flags.flags.end()) != had.end();
    if (!is_there) {
      line.inserted.insert(line.inserted.end(), flags.flags.begin(), flags.flags.end());
    }
    if (flags.flags.empty()) {
      line.environment.insert(line.environment.end(), flags.variables.begin(),
                              flags.variables.end());
    }
    return line;
  }

  /// Unwinding information in a jitdump is used with copied stacks.
  bool wants_copies(Wants wants) const {
    if (!wants.stacks || !facts_.runtime().stacks.dump.exists()) return false;
    const bool has_dump = !facts_.asked.dump_by.empty() || !stack_flags(facts_).flags.empty();
    return has_dump && !has_stack_copies(recording_.context.samples);
  }

  const RecordingCase& recording_;
  const RecordedView& recorded_;
  const DoctorCase& facts_;
  bool has_jit_;
};

/// A cause of missing names in several processes: reported as one finding.
struct CauseGroup {
  const RecordedProcessState* first = nullptr;
  std::uint64_t processes = 0, samples = 0, frames = 0, unnamed = 0;
};
using CauseGroups = std::map<std::string, CauseGroup>;

constexpr std::string_view kBeganUnseen =
    ": the recording has no mappings of the process from before its first sample, so its map and "
    "jitdump cannot be found; record again";

constexpr std::uint64_t kFirstPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO

/// Whether files of that process were searched for this one: it is the process or an ancestor.
bool uses_files_of(const RecordedProcessState& process, pid_t pid) noexcept {
  return process.counts.pid == pid ||
         std::any_of(process.looked_for.begin(), process.looked_for.end(),
                     [pid](const LookedFor& one) { return one.inherited_from == pid; });
}

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
        facts_{recorded_.view, options_, recorded_.found},
        start_(recording, recorded_, facts_, process.memory.regions != 0) {
    facts_.asked = start_flags(recorded_.found.runtime, recorded_.view);
    facts_.knows_arguments = recorded_.knows_arguments;
    facts_.is_gone = !recorded_.is_alive;
    facts_.recording = shell_word(recording.context.path);
    facts_.reading = arguments_for_reading(recording.context);
    if (!facts_.runtime().maps.log.empty()) find_proposed_log();
    // Nothing else makes the runtime write one.
    const UnwindingDump& dump = facts_.runtime().stacks.dump;
    const bool has_dump = dump.exists() && has_own_dump();
    if (has_dump && facts_.asked.dump_by.empty()) facts_.asked.dump_by = dump.flag;
  }
  ProcessAdvice(const ProcessAdvice&) = delete;
  ProcessAdvice& operator=(const ProcessAdvice&) = delete;

  /// Causes that other processes may share.
  void count_into(CauseGroups& groups) {
    find_causes();
    for (const DoctorFinding& cause : causes_) {
      CauseGroup& group = groups[key_of(cause)];
      if (group.first == nullptr) group.first = &process_;
      ++group.processes;
      group.samples += process_.counts.samples;
      group.frames += process_.jit_frames;
      group.unnamed += process_.unnamed_jit;
    }
  }

  void add(const CauseGroups& groups) {
    wants_stacks_ = process_.ends_in_jit != 0 && !facts_.asked.has_stack_flag;
    if (add_foreign()) {
      // Then this is the only cause.
    } else if (process_.unnamed_jit != 0) {
      add_names(groups);
    } else {
      add_causes(groups);
    }
    keep_names();
    add_unrecorded_code();
    add_unknown_parent();
    add_damage();
    add_ignored();
    if (!began_unseen() && !explains_ends()) add_stack_finding();
    add_interpreted_frames();
    add_only_interpreted();
  }

 private:
  bool concerns() const noexcept {
    return recorded_.found.runtime != Runtime::unknown && recorded_.found.is_the_program &&
           process_.jit_frames == 0;
  }

  /// In a system-wide recording, most processes are not the intended ones.
  bool is_meant() const noexcept {
    const std::optional<RecordCommand>& command = recording_.context.command;
    return !command || !command->records_all() || recorded_.workload_at;
  }

  bool began_unseen() const noexcept {
    return recording_.context.samples.began_unseen(process_.counts.pid);
  }

  /// The runtime was not started to name its code.
  bool lacks_flags() const noexcept {
    return process_.unnamed_jit != 0 && !is_any_used() && facts_.asked.map_by.empty() &&
           facts_.asked.dump_by.empty();
  }
  bool is_any_used() const noexcept { return uses(false) || uses(true); }

  bool uses(bool is_dump) const noexcept {
    return std::any_of(process_.looked_for.begin(), process_.looked_for.end(), [&](const auto& f) {
      return f.is_dump == is_dump && f.fate == FileFate::used;
    });
  }

  bool has_own_dump() const noexcept {
    return std::any_of(process_.looked_for.begin(), process_.looked_for.end(), [](const auto& f) {
      return f.is_dump && f.inherited_from == 0 &&
             (f.fate == FileFate::used || f.fate == FileFate::empty);
    });
  }

  /// A dump written through a stdio buffer, like Python's, and not completely; null if it is
  /// complete.
  const LookedFor* cut_buffer() const noexcept {
    if (facts_.runtime().stacks.dump.cut.empty() || !facts_.is_gone) return nullptr;
    for (const LookedFor& file : process_.looked_for) {
      if (!file.is_dump || file.inherited_from != 0) continue;
      const bool is_cut = file.fate == FileFate::used && file.is_cut_off;
      if (is_cut || (file.fate == FileFate::empty && !uses(false))) return &file;
    }
    return nullptr;
  }

  /// Unwinding information is missing together with the names.
  bool explains_ends() const noexcept {
    return cut_buffer() != nullptr && process_.ends_in_jit <= process_.unnamed_jit;
  }

  /// The environment made the runtime write its names, and the recording does not contain that.
  bool is_named_by_environment() const noexcept {
    return is_any_used() && facts_.is_gone && recorded_.workload_at &&
           facts_.asked.map_by.empty() && facts_.asked.dump_by.empty() && facts_.asked.log.empty();
  }

  /// A command that repeats the recording without that environment would lose the names.
  void keep_names() {
    if (!is_named_by_environment()) return;
    if (const auto change = start_.change({.names = true})) advice_.change_all(*change);
  }

  void report(std::string_view id, Severity severity, std::string message, std::string fix = {}) {
    advice_.add(id, severity, std::move(message), std::move(fix), process_.counts.pid);
  }

  void add_names(const CauseGroups& groups) {
    const Severity severity = severity_of(process_.unnamed_jit, process_.jit_frames);
    const std::string counts =
        counts_text(process_title(process_), process_.unnamed_jit, process_.jit_frames);
    if (began_unseen()) {
      report("unnamed-jit", severity, counts + std::string(kBeganUnseen));
      return;
    }
    if (const LookedFor* const file = cut_buffer()) {
      add_cut_buffer(counts, *file, severity);
      return;
    }
    if (add_unmarked(counts, severity) || add_causes(groups)) return;
    report("unnamed-jit", severity,
           counts + (is_any_used() ? ", although its map or jitdump has names for other code" : ""),
           recorded_.is_alive ? live_command(facts_) : "");
  }

  std::string counts_text(const std::string& where, std::uint64_t unnamed,
                          std::uint64_t frames) const {
    return concat(unnamed, " of ", frames, " frames of code that ", title_of(process_.runtime),
                  " generated in ", where, " have no name (", percent_text(unnamed, frames), ")");
  }

  /// No command line fixes this: with -X perf each name is written at once, but stacks end there.
  void add_cut_buffer(const std::string& counts, const LookedFor& file, Severity severity) {
    std::string text = counts;
    if (process_.ends_in_jit != 0 && explains_ends()) {
      text += concat(", and ", process_.ends_in_jit, " of ", process_.counts.samples,
                     " stacks end there");
    }
    report("lost-map", severity,
           concat(text, ": ", visible(file.our_path),
                  file.fate == FileFate::empty ? " is empty" : " ends within a record",
                  ", because ", facts_.runtime().stacks.dump.cut));
  }

  /// One finding for all files of the process that belong to another user.
  bool add_foreign() {
    const RecordedRefusals* const refused = recording_.context.options.refused;
    if (refused == nullptr) return false;
    std::string files;
    for (const ForeignFile& file : refused->foreign) {
      if (!uses_files_of(process_, file.pid)) continue;
      files += concat(files.empty() ? "" : "; ", visible(file.path), " belongs to user ",
                      file.owner, " and was not used: ", visible(file.why));
    }
    if (files.empty()) return false;
    const std::string before =
        process_.unnamed_jit == 0
            ? process_title(process_)
            : counts_text(process_title(process_), process_.unnamed_jit, process_.jit_frames);
    report("foreign-owner", Severity::warning, before + ": " + files,
           "perfmap stacks --any-owner " + facts_.reading);
    return true;
  }

  /// A dump that cannot be proved to belong to the process is only used on request.
  bool add_unmarked(const std::string& counts, Severity severity) {
    for (const LookedFor& file : process_.looked_for) {
      if (!file.is_dump || file.has_marker || file.fate != FileFate::shadowed) continue;
      report("no-marker", severity, counts + ": " + visible(file.our_path) + ": " + file.why,
             "perfmap stacks --jitdump " + shell_word(file.our_path) + " " + facts_.reading);
      return true;
    }
    return false;
  }

  /// For a recording made with the proposed fix: the recording does not contain the environment.
  void find_proposed_log() {
    const RecordedSamples& samples = recording_.context.samples;
    const bool is_seen = samples.was_executed(process_.counts.pid) && facts_.is_gone;
    const bool is_here = recording_.context.options.map_dir.empty() && is_of_this_machine(samples);
    const std::int64_t end = recording_.context.end_ns;
    if (!facts_.asked.log.empty() || !is_seen || !is_here || end < 0) return;
    facts_.asked.log = options_.roots.tmp + "/" + std::string(facts_.runtime().maps.log);
    const Result<FileFacts> file = look_at_path(log_of(facts_));
    constexpr std::uint64_t kLongest = INT64_MAX / 2;
    const auto length = static_cast<std::int64_t>(std::min(samples.last - samples.first, kLongest));
    const bool is_good =
        file && file->is_regular && (file->uid == 0 || file->uid == options_.reader);
    // An older log belongs to an earlier process with that pid.
    if (!is_good || file->mtime_ns < end - length - 2 * kTimeSlack) facts_.asked.log.clear();
  }

  /// The causes that the live doctor finds.
  void find_causes() {
    const bool is_all = process_.unnamed_jit != 0 && process_.unnamed_jit == process_.jit_frames;
    // Ended before V8 generated code, and so before it wrote a map.
    const bool is_early = facts_.runtime().doctor.interprets_without_code &&
                          process_.memory.regions == 0 && !facts_.has_no_code();
    const bool is_silent =
        concerns() && !is_early && (!is_any_used() || facts_.has_no_code()) && is_meant();
    if (began_unseen() || cut_buffer() != nullptr || !(is_all || is_silent)) return;
    add_not_copied();
    if (!causes_.empty()) return;
    Diagnosis live;
    live.pid = process_.counts.pid;
    live.runtime = process_.runtime;
    live.looked_for = process_.looked_for;
    live.memory = process_.memory;
    if (process_.jit_frames != 0 && live.memory.regions == 0) live.memory.regions = 1;
    live.memory.named_bytes = 0;  // no sampled code was named
    add_name_findings(facts_, live);
    causes_ = std::move(live.findings);
  }

  /// The files existed when the recording ended.
  void add_not_copied() {
    for (const MissingFile& file : recording_.context.options.missing) {
      if (file.pid != process_.counts.pid) continue;
      causes_.push_back(
          {"not-copied",
           Severity::warning,
           "the recording has no copy of " + visible(file.source) + ": " + visible(file.why),
           {}});
    }
  }

  /// Equal for processes with the same version of a runtime and the same fix.
  std::string key_of(const DoctorFinding& cause) const {
    const bool is_own = !is_about_naming(cause) || recorded_.is_alive;
    const std::string of =
        is_own ? std::to_string(process_.counts.pid)
               : std::string(to_string(process_.runtime)) + " " + recorded_.found.version;
    const std::string what = process_.unnamed_jit == 0 ? " silent " : " unnamed ";
    return of + what + std::string(cause.id) + " " + cause.message + where_text() + cause.fix;
  }

  /// Adds each cause once for all processes that have it. False: no cause found.
  bool add_causes(const CauseGroups& groups) {
    for (const DoctorFinding& cause : causes_) {
      const CauseGroup& group = groups.at(key_of(cause));
      if (group.first == &process_) add_cause(cause, group);
    }
    return !causes_.empty();
  }

  void add_cause(const DoctorFinding& cause, const CauseGroup& group) {
    const std::string where =
        group.processes == 1
            ? process_title(process_)
            : concat(group.processes, " processes, such as ",
                     process_title(process_).substr(std::string_view("process ").size()));
    const bool is_silent = group.unnamed == 0;
    if (is_silent && !matters(group.samples, total_)) return;
    const bool is_rare = !is_silent && !matters(group.unnamed, group.frames);
    const Severity severity =
        is_rare ? Severity::info : std::max(cause.severity, Severity::warning);
    const std::string message =
        (is_silent ? where : counts_text(where, group.unnamed, group.frames)) + ": " +
        cause.message;
    const pid_t pid = group.processes == 1 ? process_.counts.pid : 0;
    if (is_about_naming(cause)) {
      add_runtime_fix(cause, severity, message + where_text(), pid);
    } else {
      advice_.add(cause.id, severity, message, cause.fix, pid);
    }
  }

  /// Where the files of a process in a container were.
  std::string where_text() const {
    const RecordedProcess& process = recording_.context.samples.processes.at(process_.counts.pid);
    const bool is_inside =
        process.pid_namespace != 0 && process.pid_namespace != kFirstPidNamespace;
    if (recorded_.is_alive || !is_inside) return {};
    return "; the process ran in a container, and the file is in the container's /tmp, with the "
           "pid inside the container in its name ('perfmap snapshot PID -o DIR' saves the file "
           "while the process runs)";
  }

  /// How to start the runtime so that it names its code: through perf, or by hand.
  void add_runtime_fix(const DoctorFinding& cause, Severity severity, const std::string& message,
                       pid_t pid) {
    const MapSupport& maps = facts_.runtime().maps;
    const bool cannot = cause.id == "too-old" && (maps.is_live() || maps.newer_program.empty());
    const StartAdvice::Wants wants{cause.id != "lost-map", wants_stacks_};
    if (cause.id == "no-map" && !log_of(facts_).empty()) {
      advice_.add(cause.id, severity, message, cause.fix, pid);
      return;
    }
    // A variable cannot remove an option.
    const bool is_fixed = cause.id == "only-interpreted" && !recorded_.workload_at;
    if (const auto change = cannot || is_fixed ? std::nullopt : start_.change(wants)) {
      advice_.add_change(cause.id, severity, message, *change, pid);
    } else if (recorded_.is_alive) {
      advice_.add(cause.id, severity, message, cause.fix, pid);
    } else {
      const std::string fix = wants.names && !is_fixed ? start_.exports({.names = true}) : "";
      const std::string how =
          fix.empty() ? "" : "; set this in the environment that starts it, and record again";
      advice_.add(cause.id, severity, message + how, fix, pid);
    }
  }

  void add_damage() {
    for (const LookedFor& file : process_.looked_for) {
      const bool is_told =
          file.inherited_from != 0 && recording_.views.contains(file.inherited_from);
      if (file.fate != FileFate::used || file.damage.empty() || is_told) continue;
      const bool is_harmless = process_.unnamed_jit == 0;
      if (file.is_cut_off && (is_harmless || &file == cut_buffer())) continue;
      report("damaged-dump", is_harmless ? Severity::info : Severity::warning,
             is_harmless ? visible(file.our_path) + " is damaged, but no frame lacks a name; " +
                               visible(file.damage)
                         : damage_text(file),
             damage_fix(file));
    }
  }

  /// Code in memory that was moved, or whose mapping was lost.
  void add_unrecorded_code() {
    const std::uint64_t count = process_.in_unrecorded_code;
    if (count == 0 || began_unseen()) return;
    report("unrecorded-code", severity_of(count, process_.counts.samples),
           concat(count, " of ", process_.counts.samples, " samples of ", process_title(process_),
                  " have no name, because the recording has no code at their addresses. The "
                  "program moved code there (perf does not record mremap), or perf lost the "
                  "mapping. Only a perf map or a jitdump of the process can name them"));
  }

  /// For a process that was forked before the recording began, and has ended.
  void add_unknown_parent() {
    if (process_.knows_parents) return;
    report("unknown-parent", Severity::warning,
           process_title(process_) +
               " started before the recording and has ended. If another process forked it, the "
               "perf map or jitdump of that process may contain the names: pass that file with "
               "--map or --jitdump, or record again while the process runs");
  }

  /// For example .NET's memory that is mapped twice.
  void add_ignored() {
    const JitMemory& memory = process_.memory;
    // 'perf inject' names the code of a dump at any address.
    if (memory.ignored_bytes == 0 || uses(true)) return;
    report("perf-ignores-region", Severity::info,
           process_title(process_) + ": " + ignored_text(memory) + "; perfmap uses the map",
           "perfmap stacks --format perf-script " + facts_.reading);
  }

  /// Threads begin in native code: a stack that ends in a runtime's code has lost its callers.
  void add_stack_finding() {
    if (process_.ends_in_jit == 0 || is_of_own_stack()) return;
    const Severity severity = severity_of(process_.ends_in_jit, process_.counts.samples);
    const std::string message =
        concat(process_.ends_in_jit, " of ", process_.counts.samples, " stacks of ",
               process_title(process_), " end in code of ", title_of(process_.runtime), end_text());
    add_start_fix("frame-pointers", severity, message);
  }

  std::string end_text() const {
    const UnwindingDump& dump = facts_.runtime().stacks.dump;
    const bool has_dump = !facts_.asked.dump_by.empty();
    if (dump.exists() && has_dump && has_stack_copies(recording_.context.samples)) {
      return ", whose unwinding information is missing or wrong there";
    }
    const bool is_too_old =
        parse_version(recorded_.found.version) < parse_version(dump.first_release);
    return ", which has no frame pointers there" +
           (is_too_old ? "; " + std::string(dump.too_old) : "");
  }

  void add_start_fix(std::string_view id, Severity severity, const std::string& message) {
    const bool has_fix = wants_stacks_ && start_.can_keep_stacks();
    const bool wants_names = (lacks_flags() && !facts_.is_too_old()) || is_named_by_environment();
    const StartAdvice::Wants wants{wants_names, true};
    if (const auto change = has_fix ? start_.change(wants) : std::nullopt) {
      advice_.add_change(id, severity, message, *change, process_.counts.pid);
      return;
    }
    const StackFlags flags = stack_flags(facts_);
    std::string fix;
    if (has_fix && recorded_.is_alive && recorded_.knows_arguments) {
      CommandLine line = own_command(recorded_.view);
      line.inserted = flags.flags;
      if (flags.flags.empty()) line.environment = flags.variables;
      fix = line.text();
    } else if (has_fix) {
      fix = start_.exports({.stacks = true});
    }
    report(id, severity, message, fix);
  }

  /// Stacks that the runtime allocates begin in its code; see add_end_findings() for copied ones.
  /// In code with names they have frame pointers.
  bool is_of_own_stack() const {
    return facts_.runtime().stacks.has_own_stacks() &&
           (has_stack_copies(recording_.context.samples) || is_any_used() ||
            !facts_.asked.map_by.empty());
  }

  /// The interpreter has one name for the work of all functions, or none, and no file is missing.
  void add_only_interpreted() {
    const DoctorTexts& texts = facts_.runtime().doctor;
    const bool is_told = texts.only_interprets.empty() || texts.interprets_without_code;
    if (!facts_.asked.only_interprets || is_told) return;
    report("only-interpreted", Severity::info,
           process_title(process_) + ": " + std::string(texts.only_interprets));
  }

  void add_interpreted_frames() {
    const bool is_known = recorded_.knows_arguments && is_any_used();
    const RuntimeStacks& stacks = facts_.runtime().stacks;
    if (!stacks.is_about_names || !is_known) return;
    const StartFlags& asked = facts_.asked;
    if (asked.has_stack_flag || asked.map_by.empty() || facts_.has_no_code()) return;
    const std::string message = process_title(process_) + ": " + std::string(stacks.message);
    if (const auto change = start_.change({.names = true, .stacks = wants_stacks_})) {
      advice_.add_change(stacks.finding, Severity::info, message, *change, process_.counts.pid);
    } else {
      report(stacks.finding, Severity::info, message, naming_command(facts_, true));
    }
  }

  const RecordingCase& recording_;
  const RecordedProcessState& process_;
  const RecordedView& recorded_;
  RecordingAdvice& advice_;
  std::uint64_t total_;
  DoctorOptions options_;
  DoctorCase facts_;
  StartAdvice start_;
  std::vector<DoctorFinding> causes_;
  bool wants_stacks_ = false;
};

}  // namespace

bool is_about_naming(const DoctorFinding& finding) noexcept {
  constexpr std::array<std::string_view, 4> kIds = {"no-map", "lost-map", "too-old",
                                                    "only-interpreted"};
  return std::ranges::find(kIds, finding.id) != kIds.end();
}

void add_process_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                          RecordingAdvice& advice) {
  std::deque<ProcessAdvice> processes;
  CauseGroups groups;
  for (const RecordedProcessState& process : diagnosis.processes) {
    if (!facts.views.contains(process.counts.pid)) continue;
    processes.emplace_back(facts, diagnosis, process, advice);
    processes.back().count_into(groups);
  }
  for (ProcessAdvice& process : processes) process.add(groups);
}

}  // namespace perfmap
