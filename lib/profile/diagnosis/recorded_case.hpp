#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/doctor_findings.hpp"
#include "diagnosis/record_command.hpp"
#include "diagnosis/recorded_samples.hpp"
#include "perfmap/doctor_recording.hpp"

namespace perfmap {

/// Which files were used to name a process's code, by what find_jit answered.
class UsedFiles {
 public:
  /// `find`, noting what it answers. Must live as long as the answer; null stays null.
  StackOptions::FindJit watch(StackOptions::FindJit find);
  /// `find`, noting what it answers.
  StackOptions::FindParents watch_parents(StackOptions::FindParents find);
  bool has(pid_t pid, const FileFacts& file) const noexcept;
  /// Of a process, or the first one that it was forked from as far as that was recorded: what the
  /// other function answered. Null: it was not asked.
  const std::optional<std::vector<pid_t>>* parents_of(
      const RecordedProcess& process) const noexcept;
  /// Dumps that the process had mapped, in the order in which find_jit was asked for them.
  const std::vector<std::string>& dumps_of(pid_t pid) const noexcept;

 private:
  struct Of {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> files;  ///< device and inode
    std::vector<std::string> dumps;
  };
  std::map<pid_t, Of> processes_;
  std::map<pid_t, std::optional<std::vector<pid_t>>> parents_;
};

/// What is known of one process of a recording, in the form in which the live doctor judges: what
/// /proc says where it still lives, else what the recording and perf's command line say.
struct RecordedView {
  ProcessView view;
  FoundRuntime found;
  bool is_alive = false;  ///< the same process, and the same program
  /// Its own command line; else it has none in `view`.
  bool knows_arguments = false;
  /// Where the program stands in the command line that perf started; nothing if it does not.
  std::optional<std::size_t> workload_at = {};
  std::optional<ProcSource> process = {};  ///< where it lives
};

struct RecordingContext {
  const RecordedSamples& samples;
  const RecordingDoctorOptions& options;
  const std::optional<RecordCommand>& command;  ///< nothing where the recording has none
  std::string path;                             ///< of the recording
  bool is_of_root = false;                      ///< who recorded it, it seems
  std::int64_t end_ns = INT64_MAX;  ///< when the recording ended at the latest, by the wall clock
};

RecordedView view_recorded(pid_t pid, const std::string& comm, const RecordingContext& context);

/// Looks for maps and dumps as find_recorded_jit() does, and says of each what became of it.
void search_recorded(const RecordedView& view, const UsedFiles& used,
                     const RecordingContext& context, Diagnosis& diagnosis);

}  // namespace perfmap
