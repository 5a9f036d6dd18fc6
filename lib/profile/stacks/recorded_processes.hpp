#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "perfmap/process_tracker.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/stacks.hpp"
#include "perfmap/symbolizer.hpp"
#include "perfmap/unwinder.hpp"

namespace perfmap {

/// A process as long as its memory is what it is.
struct ProcessMoment {
  std::uint32_t id = 0;       ///< never that of another one
  std::uint64_t program = 0;  ///< one program in one process: of all moments until exec or exit
  Symbolizer::Moment place;
  std::shared_ptr<const UnwindSpace> unwind;
};

/// The processes of a recording, at the record that was read last.
class RecordedProcesses {
 public:
  explicit RecordedProcesses(const StackOptions& options);

  ProcessTracker& tracker() noexcept { return tracker_; }
  /// Any record but a sample.
  void take(const RecordView& record);
  /// The process now. Never null.
  std::shared_ptr<const ProcessMoment> moment(pid_t pid);
  /// The name of a thread; lives as long as this.
  std::string_view comm_of(pid_t pid, pid_t tid) const noexcept;
  /// Files that could not be opened, each once.
  std::span<const Error> failures() const noexcept { return failures_; }

 private:
  struct Process {
    std::uint32_t generation = 0;
    std::vector<std::string> dumps;  ///< paths of jitdumps that it has mapped
    bool wants_jit = true;           ///< its sources are to be looked for (again)
    std::shared_ptr<JitSources> jit;
    std::shared_ptr<const ProcessMoment> last;
  };

  void on_mmap(const MmapEvent& event);
  void on_fork(const ForkEvent& event);
  void on_comm(const CommEvent& event);
  std::string_view intern(std::string_view comm);
  Process& process_of(pid_t pid);
  void look_for_jit(pid_t pid, Process& process, const AddressSpace& space);

  const StackOptions& options_;
  ProcessTracker tracker_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, std::string_view> comms_;  // by tid
  std::unordered_set<std::string> names_;
  std::vector<Error> failures_;
  std::uint32_t moments_ = 0;
};

}  // namespace perfmap
