#include <algorithm>
#include <deque>

#include "diagnosis/found_file.hpp"
#include "diagnosis/process_advice.hpp"
#include "perfmap/recorded_jit.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kBeganUnseen =
    ": the recording does not have what the process mapped before its first sample, so nothing "
    "tells which map or jitdump is its own; record again";
/// A sentence that others go before.
std::string continued(std::string sentence) {
  if (sentence.starts_with("The ")) sentence[0] = 't';
  return sentence;
}

constexpr std::uint64_t kFirstPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO

}  // namespace

ProcessAdvice::ProcessAdvice(const RecordingCase& recording, const RecordingDiagnosis& diagnosis,
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
  facts_.subject = shell_word(recording.context.path);
  if (!facts_.runtime().maps.log.empty()) find_proposed_log();
  // Nothing else makes it write one.
  const UnwindingDump& dump = facts_.runtime().stacks.dump;
  const bool has_dump = dump.exists() && has_own_dump();
  if (has_dump && facts_.asked.dump_by.empty()) facts_.asked.dump_by = dump.flag;
}

/// Of a recording that was made with the fix that is proposed: it does not tell the environment.
void ProcessAdvice::find_proposed_log() {
  const RecordedSamples& samples = recording_.context.samples;
  const auto process = samples.processes.find(process_.counts.pid);
  const bool was_executed = process != samples.processes.end() && process->second.executed != 0;
  const bool is_here = recording_.context.options.map_dir.empty() && is_of_this_machine(samples);
  const std::int64_t end = recording_.context.end_ns;
  if (!facts_.asked.log.empty() || !facts_.is_gone || !was_executed || !is_here || end < 0) return;
  facts_.asked.log = options_.roots.tmp + "/" + std::string(facts_.runtime().maps.log);
  const Result<FileFacts> file = look_at_path(log_of(facts_));
  constexpr std::uint64_t kLongest = INT64_MAX / 2;
  const auto length = static_cast<std::int64_t>(std::min(samples.last - samples.first, kLongest));
  const bool is_good = file && file->is_regular && (file->uid == 0 || file->uid == options_.reader);
  // An older one is of an earlier process with that pid.
  if (!is_good || file->mtime_ns < end - length - 2 * kTimeSlack) facts_.asked.log.clear();
}

void ProcessAdvice::count_into(CauseGroups& groups) {
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

void ProcessAdvice::add(const CauseGroups& groups) {
  wants_stacks_ = process_.ends_in_jit != 0 && !facts_.asked.has_stack_flag;
  if (add_foreign()) {
    // Then nothing else is the cause.
  } else if (process_.unnamed_jit != 0) {
    add_names(groups);
  } else {
    add_causes(groups);
  }
  add_unrecorded_code();
  add_unknown_parent();
  add_damage();
  add_ignored();
  if (!began_unseen() && !explains_ends()) add_stack_finding();
  add_interpreted_frames();
}

bool ProcessAdvice::concerns() const noexcept {
  return recorded_.found.runtime != Runtime::unknown && recorded_.found.is_the_program &&
         process_.jit_frames == 0;
}

bool ProcessAdvice::is_meant() const noexcept {
  const std::optional<RecordCommand>& command = recording_.context.command;
  return !command || !command->records_all() || recorded_.workload_at;
}

bool ProcessAdvice::began_unseen() const noexcept {
  const auto found = recording_.context.samples.processes.find(process_.counts.pid);
  return found != recording_.context.samples.processes.end() && found->second.began_unseen;
}

bool ProcessAdvice::lacks_flags() const noexcept {
  return process_.unnamed_jit != 0 && !is_any_used() && facts_.asked.map_by.empty() &&
         facts_.asked.dump_by.empty();
}

bool ProcessAdvice::uses(bool is_dump) const noexcept {
  return std::any_of(process_.looked_for.begin(), process_.looked_for.end(), [&](const auto& f) {
    return f.is_dump == is_dump && f.fate == FileFate::used;
  });
}

bool ProcessAdvice::has_own_dump() const noexcept {
  return std::any_of(process_.looked_for.begin(), process_.looked_for.end(), [](const auto& f) {
    return f.is_dump && f.inherited_from == 0 &&
           (f.fate == FileFate::used || f.fate == FileFate::empty);
  });
}

void ProcessAdvice::add_names(const CauseGroups& groups) {
  const Severity severity =
      matters(process_.unnamed_jit, process_.jit_frames) ? Severity::warning : Severity::info;
  const std::string counts =
      counts_text(process_title(process_), process_.unnamed_jit, process_.jit_frames);
  if (began_unseen()) {
    advice_.add("unnamed-jit", severity, counts + std::string(kBeganUnseen), "",
                process_.counts.pid);
    return;
  }
  if (const LookedFor* const file = cut_buffer()) {
    add_cut_buffer(counts, *file, severity);
    return;
  }
  if (add_unmarked(counts, severity) || add_causes(groups)) return;
  advice_.add(
      "unnamed-jit", severity,
      counts + (is_any_used() ? ", although the map or jitdump that was found names others" : ""),
      recorded_.is_alive ? live_command(facts_) : "", process_.counts.pid);
}

std::string ProcessAdvice::counts_text(const std::string& where, std::uint64_t unnamed,
                                       std::uint64_t frames) const {
  return std::to_string(unnamed) + " of " + std::to_string(frames) + " frames of code that " +
         std::string(title_of(process_.runtime)) + " made in " + where + " have no name (" +
         percent_text(unnamed, frames) + ")";
}

void ProcessAdvice::add_cut_buffer(const std::string& counts, const LookedFor& file,
                                   Severity severity) {
  const std::string ends = process_.ends_in_jit == 0 || !explains_ends()
                               ? ""
                               : ", and " + std::to_string(process_.ends_in_jit) + " of " +
                                     std::to_string(process_.counts.samples) + " stacks end there";
  advice_.add("lost-map", severity,
              counts + ends + ": " + visible(file.our_path) +
                  (file.fate == FileFate::empty ? " is empty" : " ends within a record") +
                  ", because " + std::string(facts_.runtime().stacks.dump.cut),
              "", process_.counts.pid);
}

bool ProcessAdvice::add_foreign() {
  const RecordedRefusals* const refused = recording_.context.options.refused;
  if (refused == nullptr) return false;
  std::string files;
  for (const ForeignFile& file : refused->foreign) {
    if (!uses_files_of(process_, file.pid)) continue;
    files += (files.empty() ? "" : "; ") + visible(file.path) + " belongs to user " +
             std::to_string(file.owner) + " and was not used: " + visible(file.why);
  }
  if (files.empty()) return false;
  const std::string before =
      process_.unnamed_jit == 0
          ? process_title(process_)
          : counts_text(process_title(process_), process_.unnamed_jit, process_.jit_frames);
  advice_.add("foreign-owner", Severity::warning, before + ": " + files,
              "perfmap stacks --any-owner " + facts_.subject, process_.counts.pid);
  return true;
}

bool ProcessAdvice::add_unmarked(const std::string& counts, Severity severity) {
  for (const LookedFor& file : process_.looked_for) {
    if (!file.is_dump || file.has_marker || file.fate != FileFate::shadowed) continue;
    advice_.add("no-marker", severity, counts + ": " + visible(file.our_path) + ": " + file.why,
                "perfmap stacks --jitdump " + shell_word(file.our_path) + " " + facts_.subject,
                process_.counts.pid);
    return true;
  }
  return false;
}

void ProcessAdvice::find_causes() {
  const bool is_all = process_.unnamed_jit != 0 && process_.unnamed_jit == process_.jit_frames;
  const bool is_silent = concerns() && (!is_any_used() || facts_.has_no_code()) && is_meant();
  if (began_unseen() || cut_buffer() != nullptr || !(is_all || is_silent)) return;
  Diagnosis live;
  live.pid = process_.counts.pid;
  live.runtime = process_.runtime;
  live.looked_for = process_.looked_for;
  live.memory = process_.memory;
  if (process_.jit_frames != 0 && live.memory.regions == 0) live.memory.regions = 1;
  live.memory.named_bytes = 0;  // none of what was sampled
  add_name_findings(facts_, live);
  causes_ = std::move(live.findings);
}

bool ProcessAdvice::is_of_runtime(const DoctorFinding& cause) noexcept {
  return cause.id == "no-map" || cause.id == "lost-map" || cause.id == "too-old" ||
         cause.id == "only-interpreted";
}

std::string ProcessAdvice::key_of(const DoctorFinding& cause) const {
  const bool is_own = !is_of_runtime(cause) || recorded_.is_alive;
  const std::string of =
      is_own ? std::to_string(process_.counts.pid)
             : std::string(to_string(process_.runtime)) + " " + recorded_.found.version;
  const std::string what = process_.unnamed_jit == 0 ? " silent " : " unnamed ";
  return of + what + std::string(cause.id) + " " + cause.message + where_text() + cause.fix;
}

bool ProcessAdvice::add_causes(const CauseGroups& groups) {
  for (const DoctorFinding& cause : causes_) {
    const CauseGroup& group = groups.at(key_of(cause));
    if (group.first == &process_) add_cause(cause, group);
  }
  return !causes_.empty();
}

void ProcessAdvice::add_cause(const DoctorFinding& cause, const CauseGroup& group) {
  const std::string where =
      group.processes == 1
          ? process_title(process_)
          : std::to_string(group.processes) + " processes, such as " +
                process_title(process_).substr(std::string_view("process ").size());
  const bool is_silent = group.unnamed == 0;
  if (is_silent && !matters(group.samples, total_)) return;
  const bool is_rare = !is_silent && !matters(group.unnamed, group.frames);
  const Severity severity = is_rare ? Severity::info : std::max(cause.severity, Severity::warning);
  const std::string message =
      (is_silent ? where : counts_text(where, group.unnamed, group.frames)) + ": " +
      continued(cause.message);
  const pid_t pid = group.processes == 1 ? process_.counts.pid : 0;
  if (is_of_runtime(cause)) {
    add_runtime_fix(cause, severity, message + where_text(), pid);
  } else {
    advice_.add(cause.id, severity, message, cause.fix, pid);
  }
}

std::string ProcessAdvice::where_text() const {
  const RecordedProcess& process = recording_.context.samples.processes.at(process_.counts.pid);
  const bool is_inside = process.pid_namespace != 0 && process.pid_namespace != kFirstPidNamespace;
  if (recorded_.is_alive || !is_inside) return {};
  return "; it ran in a container, whose own /tmp has the file by its pid there ('perfmap "
         "snapshot PID DIR' keeps it while the process lives)";
}

void ProcessAdvice::add_runtime_fix(const DoctorFinding& cause, Severity severity,
                                    const std::string& message, pid_t pid) {
  const bool cannot = cause.id == "too-old" && facts_.runtime().maps.is_live();
  const StartAdvice::Wants wants{cause.id != "lost-map", wants_stacks_};
  if (cause.id == "no-map" && !log_of(facts_).empty()) {
    advice_.add(cause.id, severity, message, cause.fix, pid);
    return;
  }
  // A variable does not remove an option.
  const bool is_fixed = cause.id == "only-interpreted" && !recorded_.workload_at;
  if (const auto change = cannot || is_fixed ? std::nullopt : start_.change(wants)) {
    advice_.add_change(cause.id, severity, message, *change, pid);
  } else if (recorded_.is_alive) {
    advice_.add(cause.id, severity, message, cause.fix, pid);
  } else {
    const std::string fix = wants.names && !is_fixed ? start_.exports({.names = true}) : "";
    const std::string how = fix.empty() ? "" : "; set this where it is started, and record again";
    advice_.add(cause.id, severity, message + how, fix, pid);
  }
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
