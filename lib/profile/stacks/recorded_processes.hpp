// SPDX-License-Identifier: MIT
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
#include "process/failure_list.hpp"
#include "process/jit_lineage.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap {

/// Converts sample times to the clock of jitdumps: CLOCK_MONOTONIC, or the processor's ticks.
class SourceClock {
 public:
  explicit SourceClock(const std::optional<TimeConversion>& conversion) : conversion_(conversion) {}

  /// For the first source that has a dump. If the clocks cannot be compared, returns the end of
  /// time: code then gets its last name.
  std::uint64_t at(std::uint64_t time, const RecordedEvent& event,
                   std::span<const std::shared_ptr<JitSources>> sources);
  /// That a conversion failed, and what would help.
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  std::uint64_t incomparable(const char* why);

  std::optional<TimeConversion> conversion_;
  std::optional<Error> failure_;
};

/// The main binary of each process of a recording, at the record read last.
///
/// After exec the kernel maps the main binary first, then its interpreter. For a process that
/// existed before the recording, perf lists mappings by address: the main binary is the file that
/// the process is named after, else the first file. A child has its parent's.
class RecordedPrograms {
 public:
  /// Borrows both.
  RecordedPrograms(const RecordingFacts& facts, FrameTable& table);

  /// Accepts any record; only those about memory and processes matter.
  void take(const RecordView& record);
  /// The table index of its first executable mapping; 0: unknown.
  std::uint32_t of(pid_t pid) const noexcept;
  /// Of a file, as perf recorded it at the end; empty: unknown. Lives as long as the facts.
  std::string_view build_id_of(std::string_view path) const noexcept;

  void on_mmap(const MmapEvent& event);
  void on_comm(const CommEvent& event);
  void on_fork(const ForkEvent& event);
  void on_exit(const ExitEvent&) {}

 private:
  struct Process {
    std::string comm;
    std::uint32_t mapping = 0;
    bool was_executed = false;  ///< then the recording has all its mappings
    bool is_certain = false;
  };

  FrameTable& table_;
  std::unordered_map<std::string_view, std::string_view> build_ids_;  // by path
  std::unordered_map<pid_t, Process> processes_;
};

/// The sources of a process and its ancestors, as long as they stay the same. Cached answers for
/// memory use the address of one of the marks, or of `unrecorded`, as key.
struct JitNames {
  std::vector<std::shared_ptr<JitSources>> sources;  ///< nearest ancestor first
  char marks[3] = {};                                ///< one per JitLineage::Origin
  char unrecorded = 0;                               ///< for may_be_unrecorded_code()

  bool has_any() const noexcept {
    return std::ranges::any_of(
        sources, [](const auto& source) { return source != nullptr && !source->empty(); });
  }
};

/// The state of a process while its memory stays the same.
struct AddressSpaceSnapshot {
  std::uint32_t id = 0;       ///< unique, never reused
  std::uint64_t program = 0;  ///< one program in one process: the same for all snapshots until exec
                              ///< or exit
  Symbolizer::PastProcess place;
  std::shared_ptr<const JitNames> names;  ///< null: there are no sources
  std::shared_ptr<const UnwindSpace> unwind;
};

/// The name for a thread that no event names, like perf's.
std::string unnamed_comm(pid_t tid);

/// The processes of a recording, at the record read last.
class RecordedProcesses {
 public:
  RecordedProcesses(const StackOptions& options, SourceClock& clock);

  ProcessTracker& tracker() noexcept { return tracker_; }
  /// Accepts any record except samples.
  void take(const RecordView& record);
  /// The current state of the process, for a sample of `event`. For a sample taken during exec,
  /// before the new program runs, the state of the program that called exec. Never null.
  std::shared_ptr<const AddressSpaceSnapshot> moment(const RecordedSample& sample,
                                                     const RecordedEvent& event);
  /// The name of a thread; ":TID", like perf, if nothing in the recording names it. Lives as long
  /// as this object.
  std::string_view comm_of(pid_t pid, pid_t tid);
  /// Files that could not be opened, each once.
  std::span<const Error> failures() const noexcept { return failures_.errors(); }

  void on_mmap(const MmapEvent& event);
  void on_fork(const ForkEvent& event);
  void on_comm(const CommEvent& event);
  void on_exit(const ExitEvent& event);

 private:
  struct Process {
    std::shared_ptr<JitLineage> lineage;  ///< null: unknown process
    std::shared_ptr<const AddressSpaceSnapshot> last;
    std::uint64_t lookups = 0;  ///< value of lookups_ when `last` was made
    bool has_stray = false;     ///< a sample was in unknown code
  };
  /// From an exec until the new program runs, the kernel maps it in steps.
  struct Exec {
    std::uint64_t time = 0;
    Process former;
  };
  /// The files of a program, which its descendants use, too.
  struct JitFiles {
    std::vector<std::string> dumps;  ///< paths of the jitdumps that it has mapped
    bool wants_lookup = true;        ///< sources must be searched (again)
    bool wants_parents = true;       ///< find_parents has not been called for it
  };

  std::string_view intern(std::string_view comm);
  Process& process_of(pid_t pid);
  std::shared_ptr<const AddressSpaceSnapshot> moment_of(Process& process, pid_t pid,
                                                        std::uint64_t when,
                                                        const RecordedEvent& event);
  bool wants_parents(const JitLineage& first);
  void look_for_parents(JitLineage& first);
  static bool is_first_stray(Process& process, const RecordedSample& sample);
  std::shared_ptr<const CodeNode> code_of(pid_t pid, const AddressSpace& space);
  bool may_have_jit(const CodeNode* code) const;
  void look_for_jit(JitLineage& lineage, JitFiles& files);
  static bool may_have_code_of_parent(const JitLineage& program, const AddressSpace& space);
  bool wants_any(const JitLineage& program, bool may_have);
  void look_for_all_jit(Process& process, const CodeNode* code, const AddressSpace& space);
  static std::shared_ptr<const JitNames> names_of(const Process& process);
  void set_fork_times(const Process& process, const JitNames& names, const RecordedEvent& event);

  const StackOptions& options_;
  SourceClock& clock_;
  ProcessTracker tracker_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, Exec> execs_;
  std::unordered_map<const JitLineage*, JitFiles> files_;  // the tracker keeps all lineages alive
  std::unordered_map<pid_t, std::string_view> comms_;      // by tid
  std::unordered_set<std::string> names_;
  FailureList failures_;
  SharedCode code_;
  std::uint32_t moments_ = 0;
  std::uint64_t lookups_ = 1;  // increased whenever sources may have changed
};

}  // namespace perfmap
