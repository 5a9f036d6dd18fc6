#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "doctor/findings.hpp"
#include "doctor/record_command.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"

namespace perfmap {

// What a recording says of its processes.

struct JitLineage;

/// Samples of code that a process's runtime made: those whose address lies in executable memory
/// that no file names.
struct JitSamples {
  std::uint64_t count = 0;
  std::uint64_t unnamed = 0;
  std::map<Address, std::uint64_t> pages;  ///< where the unnamed ones are, by page
};

/// A process as its events show it.
struct RecordedProcess {
  /// Memory at its last sample; null where it has none, or nothing is known of it.
  std::shared_ptr<const AddressSpace> memory;
  std::shared_ptr<const JitLineage> lineage;  ///< then, too
  /// The file that was mapped to run first after exec: the program. Empty: nothing tells.
  std::string program;
  /// The how manieth exec of the recording made it what it is, or its parent; 0: none that was
  /// recorded.
  std::uint64_t executed = 0;
  std::uint64_t samples_of_32_bit = 0;  ///< by the registers that were sampled
  std::uint64_t pid_namespace = 0;      ///< inode; 0: not recorded
  /// It had samples before any record that it exists: nothing tells what it had mapped.
  bool began_unseen = false;
};

struct RecordedSamples {
  std::uint64_t first = 0, last = 0;  ///< times of samples; 0: there are none
  std::unordered_set<pid_t> pids;     ///< of which something was recorded
  struct Marker {
    pid_t pid = 0;
    std::uint64_t time = 0;
    std::string path;
  };
  std::vector<Marker> markers;  ///< dumps that processes had mapped
  std::map<pid_t, JitSamples> jit;
  std::map<pid_t, RecordedProcess> processes;
  RecordingFacts facts;
  std::vector<RecordedEvent> events;

  /// Whether all events have the clock of jitdumps.
  bool is_monotonic() const noexcept;
  /// Null: nothing but its pid was recorded, if that.
  const RecordedProcess* process(pid_t pid) const noexcept {
    const auto found = processes.find(pid);
    return found == processes.end() ? nullptr : &found->second;
  }
  bool began_unseen(pid_t pid) const noexcept {
    const RecordedProcess* const one = process(pid);
    return one != nullptr && one->began_unseen;
  }
  bool was_executed(pid_t pid) const noexcept {
    const RecordedProcess* const one = process(pid);
    return one != nullptr && one->executed != 0;
  }
};

/// Goes over a recording once. `is_named` is asked for each address that a runtime's code may have.
RecordedSamples read_samples(
    const Recording& recording,
    const std::function<bool(pid_t pid, Address address, std::uint64_t time)>& is_named);

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

/// What findings about a recording are made of.
struct RecordingCase {
  const RecordingContext& context;
  const StackStatistics& statistics;
  /// By pid, of those that have samples.
  const std::map<pid_t, RecordedView>& views;
};

// Its stacks.

inline constexpr std::uint64_t kCallchain = 1U << 5;   // PERF_SAMPLE_CALLCHAIN
inline constexpr std::uint64_t kUserStack = 1U << 13;  // PERF_SAMPLE_STACK_USER

/// Counts what StackReader does not: frames of runtimes' code, and where stacks end for want of
/// information. Holds 32 bytes for each function that ends stacks of a process.
class StackCounter {
 public:
  /// Borrows both.
  StackCounter(const FrameTable& table, const std::vector<RecordedEvent>& events)
      : table_(table), events_(events) {}

  void take(const StackSample& sample);
  /// The most frequent ones first.
  std::vector<EndedStacks> ended(pid_t pid) const;
  /// Frames without a name in files, by the file's path.
  std::map<std::string_view, std::uint64_t> unnamed_files() const;

  std::map<pid_t, RecordedProcessState> processes;

 private:
  bool ends_in_jit(const StackSample& sample) const noexcept;
  bool has_stack(const StackSample& sample) const noexcept;
  void take_end(const StackSample& sample);

  struct Ends {
    std::uint64_t no_info = 0, bad_memory = 0, alone = 0;
  };
  const FrameTable& table_;
  const std::vector<RecordedEvent>& events_;
  std::map<std::pair<pid_t, std::uint32_t>, Ends> ends_;      // by the last frame's function
  std::unordered_map<std::uint32_t, std::uint64_t> unnamed_;  // frames of files, by function
};

/// An ELF file whose symbol table was stripped, and which has no debug file here.
struct StrippedFile {
  std::string path;
  std::uint64_t unnamed = 0;  ///< frames in it without a name
  bool has_build_id = false;  ///< by which a debug file can be found
};

/// The ELF files of a recording, by the path that frames have.
class OpenedModules {
 public:
  /// `open`, which must not be empty, with a note of what it opens.
  ProcessTracker::OpenModule watch(ProcessTracker::OpenModule open);
  /// Those of the counted files that have no symbols, the one with the most frames first. Opens
  /// only files with frames that have no name.
  std::vector<StrippedFile> stripped(const StackCounter& counter) const;

 private:
  ProcessTracker::OpenModule open_;
  std::map<std::string, Region, std::less<>> regions_;
};

// Findings.

/// Collects findings. Those for which the recording has to be made again have one command line:
/// perf's, with what all warnings ask for, so that it has to be pasted once.
class RecordingAdvice {
 public:
  using Change = std::function<void(RecordCommand&)>;

  RecordingAdvice(RecordCommand base, RecordingDiagnosis& diagnosis)
      : base_(std::move(base)), diagnosis_(diagnosis) {}

  /// `fix` is a command of its own.
  void add(std::string_view id, Severity severity, std::string message, std::string fix = {},
           pid_t pid = 0);
  /// The change is for all findings; an info has it for itself alone.
  void add_change(std::string_view id, Severity severity, std::string message, const Change& change,
                  pid_t pid = 0);
  /// A change that would do harm to other processes: only in this finding's command.
  void add_own_change(std::string_view id, Severity severity, std::string message,
                      const Change& change, pid_t pid = 0);
  /// Sorts the findings: those that cost names first.
  void finish();

 private:
  RecordCommand base_;
  RecordingDiagnosis& diagnosis_;
  std::vector<std::pair<std::size_t, Change>> changes_;  // position among the findings
};

/// The command that would make the recording again on this machine: processes that have ended are
/// looked for by name.
RecordCommand command_to_repeat(const RecordingCase& facts, const RecordingDiagnosis& diagnosis);

/// About perf: how it was called, and what it lost.
void add_recorder_findings(const RecordingCase& facts, RecordingAdvice& advice);
/// About the names of processes' code, and what was looked for.
void add_process_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                          RecordingAdvice& advice);
/// About frames without a name in such files.
void add_symbol_findings(const RecordingCase& facts, const std::vector<StrippedFile>& stripped,
                         RecordingAdvice& advice);
/// About stacks that end early.
void add_end_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                      RecordingAdvice& advice);

/// Less than one in a hundred is not worth another recording.
inline bool matters(std::uint64_t part, std::uint64_t whole) noexcept {
  return part != 0 && part * 100 >= whole;
}
/// Of what costs so much: a warning, if it matters.
inline Severity severity_of(std::uint64_t part, std::uint64_t whole) noexcept {
  return matters(part, whole) ? Severity::warning : Severity::info;
}
std::string process_title(const RecordedProcessState& process);
/// Whether samples have the copies of stacks that --call-graph dwarf makes.
bool has_stack_copies(const RecordedSamples& samples) noexcept;
/// Whether the recording was made on a machine of this one's name, as far as it tells.
bool is_of_this_machine(const RecordedSamples& samples);

/// The size for --call-graph dwarf,N by which most of those stacks would be whole: twice as much as
/// was copied, and where many were cut, more. A multiple of 8, as perf wants it; 0 where it takes
/// no larger one.
std::uint32_t mending_stack_size(std::uint32_t copied, std::uint64_t cut,
                                 std::uint64_t samples) noexcept;

}  // namespace perfmap
