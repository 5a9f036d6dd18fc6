#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnosis/recording_findings.hpp"
#include "diagnosis/start_advice.hpp"

namespace perfmap {

/// What costs names in several processes alike: one finding.
struct CauseGroup {
  const RecordedProcessState* first = nullptr;
  std::uint64_t processes = 0, samples = 0, frames = 0, unnamed = 0;
};
using CauseGroups = std::map<std::string, CauseGroup>;

/// Findings about one process.
class ProcessAdvice {
 public:
  ProcessAdvice(const RecordingCase& recording, const RecordingDiagnosis& diagnosis,
                const RecordedProcessState& process, RecordingAdvice& advice);
  ProcessAdvice(const ProcessAdvice&) = delete;
  ProcessAdvice& operator=(const ProcessAdvice&) = delete;

  /// Causes that other processes may have, too.
  void count_into(CauseGroups& groups);
  void add(const CauseGroups& groups);

 private:
  bool concerns() const noexcept;
  /// Of the whole machine, most processes are not those that were meant.
  bool is_meant() const noexcept;
  bool began_unseen() const noexcept;
  /// It was not told to name its code.
  bool lacks_flags() const noexcept;
  bool is_any_used() const noexcept { return uses(false) || uses(true); }
  bool uses(bool is_dump) const noexcept;
  bool has_own_dump() const noexcept;
  /// A dump that goes through a buffer of stdio, as Python's; null where all of it was written.
  const LookedFor* cut_buffer() const noexcept;
  /// Unwinding information is missing with the names.
  bool explains_ends() const noexcept;

  void add_names(const CauseGroups& groups);
  std::string counts_text(const std::string& where, std::uint64_t unnamed,
                          std::uint64_t frames) const;
  /// No command line helps: with -X perf each name is written at once, but stacks end there.
  void add_cut_buffer(const std::string& counts, const LookedFor& file, Severity severity);
  /// One finding for all files of the process that belong to another user.
  bool add_foreign();
  /// A dump that nothing shows to be the process's is not used unasked.
  bool add_unmarked(const std::string& counts, Severity severity);
  void find_proposed_log();
  /// As the live doctor finds them.
  void find_causes();
  static bool is_of_runtime(const DoctorFinding& cause) noexcept;
  /// Equal for processes of the same version of a runtime that want the same.
  std::string key_of(const DoctorFinding& cause) const;
  /// Each cause once for all processes that have it. False: there is none.
  bool add_causes(const CauseGroups& groups);
  void add_cause(const DoctorFinding& cause, const CauseGroup& group);
  /// Where the files of a process in a container were.
  std::string where_text() const;
  /// How the runtime is started so that it names its code: by perf, or by hand.
  void add_runtime_fix(const DoctorFinding& cause, Severity severity, const std::string& message,
                       pid_t pid);

  void add_damage();
  /// Code in memory that was moved, or whose mapping was lost.
  void add_unrecorded_code();
  /// Of a process that was forked before the recording began, and is gone.
  void add_unknown_parent();
  /// As .NET's memory that is mapped twice.
  void add_ignored();
  /// Threads begin in native code: a stack that ends in a runtime's has lost its callers.
  void add_stack_finding();
  std::string end_text() const;
  void add_start_fix(std::string_view id, Severity severity, const std::string& message);
  /// Stacks of the runtime's own begin in its code; see add_end_findings() for copied ones. In code
  /// that has names they have frame pointers.
  bool is_of_own_stack() const;
  void add_interpreted_frames();

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

}  // namespace perfmap
