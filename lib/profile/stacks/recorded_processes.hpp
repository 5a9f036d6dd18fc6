#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"
#include "process/jit_lineage.hpp"

namespace perfmap {

/// Tells the times of samples by the clock of jitdumps: CLOCK_MONOTONIC, or the processor's ticks.
class SourceClock {
 public:
  explicit SourceClock(const std::optional<TimeConversion>& conversion) : conversion_(conversion) {}

  /// For the first of the sources that has a dump. Where the clocks cannot be compared, the end:
  /// code is then named as it was at last.
  std::uint64_t at(std::uint64_t time, const RecordedEvent& event,
                   std::span<const std::shared_ptr<JitSources>> sources);
  /// That this happened, and what would have helped.
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  std::uint64_t incomparable(const char* why);

  std::optional<TimeConversion> conversion_;
  std::optional<Error> failure_;
};

/// The main binary of each process of a recording, at the record that was read last.
///
/// After exec the kernel maps the main binary first, then its interpreter. Of a process that was
/// there before, perf lists what is mapped by address: the main binary is the file that the
/// process is named after, else the first one. A child has its parent's.
class RecordedPrograms {
 public:
  /// Borrows both.
  RecordedPrograms(const RecordingFacts& facts, FrameTable& table);

  /// Any record; only those about memory and processes matter.
  void take(const RecordView& record);
  /// Its number in the table, of its first executable mapping; 0: not known.
  std::uint32_t of(pid_t pid) const noexcept;

 private:
  struct Process {
    std::string comm;
    std::uint32_t mapping = 0;
    bool was_executed = false;  ///< since when the recording has all of its mappings
    bool is_certain = false;
  };

  void on_mmap(const MmapEvent& event);

  FrameTable& table_;
  std::unordered_map<std::string_view, std::string_view> build_ids_;  // by path
  std::unordered_map<pid_t, Process> processes_;
};

/// The sources of a process and of those that it was forked from, as long as they stay the same.
/// Answers for memory are kept by the address of one of the marks, the last one included.
struct JitNames {
  std::vector<std::shared_ptr<JitSources>> sources;  ///< the nearest first
  char marks[3] = {};                                ///< one for each JitLineage::Origin
  char unrecorded = 0;                               ///< of may_be_unrecorded_code()

  bool has_any() const noexcept {
    return std::ranges::any_of(
        sources, [](const auto& source) { return source != nullptr && !source->empty(); });
  }
};

/// A process as long as its memory is what it is.
struct AddressSpaceSnapshot {
  std::uint32_t id = 0;       ///< never that of another one
  std::uint64_t program = 0;  ///< one program in one process: of all moments until exec or exit
  Symbolizer::PastProcess place;
  std::shared_ptr<const JitNames> names;  ///< null: nobody has any
  std::shared_ptr<const UnwindSpace> unwind;
};

/// What a thread is called that no event names, as perf calls it.
std::string unnamed_comm(pid_t tid);

/// The processes of a recording, at the record that was read last.
class RecordedProcesses {
 public:
  RecordedProcesses(const StackOptions& options, SourceClock& clock);

  ProcessTracker& tracker() noexcept { return tracker_; }
  /// Any record but a sample.
  void take(const RecordView& record);
  /// The process now, for a sample of `event`; of a sample that the kernel took before the program
  /// of an exec ran, the one that called exec. Never null.
  std::shared_ptr<const AddressSpaceSnapshot> moment(const RecordedSample& sample,
                                                     const RecordedEvent& event);
  /// The name of a thread, ":TID" if nothing in the recording names it, as perf has it; lives as
  /// long as this.
  std::string_view comm_of(pid_t pid, pid_t tid);
  /// Files that could not be opened, each once.
  std::span<const Error> failures() const noexcept { return failures_; }

 private:
  struct Process {
    std::shared_ptr<JitLineage> lineage;  ///< null: of an unknown process
    std::shared_ptr<const AddressSpaceSnapshot> last;
    std::uint64_t lookups = 0;  ///< lookups_ when `last` was made
    bool has_stray = false;     ///< a sample was where no code is known
  };
  /// From an exec until the new program runs: the kernel maps it piece by piece.
  struct Exec {
    std::uint64_t time = 0;
    Process former;
  };
  /// The files of a program, which those that were forked from it ask for, too.
  struct JitFiles {
    std::vector<std::string> dumps;  ///< paths of jitdumps that it has mapped
    bool wants_lookup = true;        ///< sources are to be looked for (again)
    bool wants_parents = true;       ///< find_parents was not asked about it
  };

  void on_mmap(const MmapEvent& event);
  void on_fork(const ForkEvent& event);
  void on_comm(const CommEvent& event);
  std::string_view intern(std::string_view comm);
  void on_exit(const ExitEvent& event);
  Process& process_of(pid_t pid);
  std::shared_ptr<const AddressSpaceSnapshot> moment_of(Process& process, pid_t pid,
                                                        std::uint64_t when,
                                                        const RecordedEvent& event);
  bool wants_parents(const JitLineage& first);
  void look_for_parents(JitLineage& first);
  static bool is_first_stray(Process& process, const RecordedSample& sample);
  bool may_have_jit(pid_t pid, const AddressSpace& space);
  void look_for_jit(JitLineage& lineage, JitFiles& files);
  static bool may_have_code_of_parent(const JitLineage& program, const AddressSpace& space);
  void look_for_all_jit(Process& process, pid_t pid, const AddressSpace& space);
  static std::shared_ptr<const JitNames> names_of(const Process& process);
  void set_fork_times(const Process& process, const JitNames& names, const RecordedEvent& event);

  const StackOptions& options_;
  SourceClock& clock_;
  ProcessTracker tracker_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, Exec> execs_;
  std::unordered_map<const JitLineage*, JitFiles> files_;  // the tracker keeps all lineages
  std::unordered_map<pid_t, std::string_view> comms_;      // by tid
  std::unordered_set<std::string> names_;
  std::vector<Error> failures_;
  std::uint32_t moments_ = 0;
  std::uint64_t lookups_ = 1;  // grows whenever there may be other sources
};

}  // namespace perfmap
