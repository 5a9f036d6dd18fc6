#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/inject.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// Code of a dump comes to an address, or goes from there.
struct CodeMapping {
  static constexpr std::uint64_t kNothing = UINT64_MAX;  ///< for `offset`: the code is gone

  std::uint64_t time = 0;
  AddressRange range;
  std::uint64_t offset = 0;  ///< in the ELF file
  std::uint32_t dump = 0;    ///< the caller's number for it
};

/// What LOAD and MOVE records of a dump did, in the order of their times. `code` is where
/// write_elf_of_all_code() has put it. Without `is_timed` all of it happens at `otherwise`.
/// O(n log n).
std::vector<CodeMapping> code_mappings(const Timeline& timeline, const std::vector<CodeInElf>& code,
                                       bool is_timed, std::uint64_t otherwise);

/// Maps the file's frames from the first of the mappings on. Nothing where it has none, or code
/// lies there at any time. O(n).
std::optional<CodeMapping> frames_mapping(const std::vector<CodeMapping>& mappings,
                                          const ElfOfAllCode& elf);

/// The ELF machine of a dump that was recorded on `arch`, where its header names one whose code
/// could not have run there; nothing where the header is right, or nobody knows.
std::optional<std::uint16_t> machine_recorded(const Jitdump& dump, std::string_view arch) noexcept;

/// A process mapped a jitdump.
struct DumpMarker {
  pid_t pid = 0;
  std::uint64_t time = 0;
  std::string path;
};

/// Executable memory that no file names came somewhere; or, with an empty range, a process began
/// with its parent's memory, or, without a parent, to run another program, and everything went.
struct MemoryChange {
  std::uint64_t number = 0;  ///< of the record, in the order in which they are read
  std::uint64_t time = 0;
  pid_t pid = 0;
  std::uint32_t size = 0;  ///< of the record
  AddressRange range;
  pid_t parent = 0;
};

/// What has to be known of a recording before it is written again.
struct RecordingSurvey {
  RecordingFacts facts;
  std::vector<RecordedEvent> events;
  std::vector<DumpMarker> markers;    ///< each dump of a process once
  std::vector<MemoryChange> changes;  ///< in the order of records
  ProcessTracker processes;           ///< that has had all events
  std::uint64_t bytes = 0;            ///< of the records that are kept
  std::uint64_t first_time = 0;       ///< of a record that has one
  std::uint64_t lost_bytes = 0;
  std::uint64_t out_of_order = 0;

  /// Whether every event of the recording has the clock of jitdumps.
  bool is_monotonic() const noexcept;
};

/// False for what only says how the records of the old file lay in it.
bool is_kept(const RecordView& record) noexcept;

/// Goes over the recording once. Fails with unsupported where bytes of it lie outside of records.
Result<RecordingSurvey> survey(const Recording& recording, ProcessTracker::OpenModule open_module,
                               Diagnostics& problems);

/// Makes the MMAP2 records of code, with the sample ids that the recording's own records have.
/// Source: Linux, include/uapi/linux/perf_event.h.
class MmapRecords {
 public:
  MmapRecords(const std::vector<RecordedEvent>& events, bool swapped);

  /// How long a record is that names this file. Longer than a record can be where the name is.
  std::size_t size_of(std::string_view file) const noexcept;
  /// Borrowed until the next call.
  std::string_view make(pid_t pid, const CodeMapping& mapping, std::string_view file);

 private:
  void add_trailer(pid_t pid, std::uint64_t time);
  template <class T>
  void number(T value);

  std::uint64_t trailer_ = 0;  // PERF_SAMPLE_… that it has
  std::uint64_t id_ = 0;
  bool swapped_;
  std::string bytes_;
};

/// The records of anonymous memory that come where code is already, by their numbers. `mappings`
/// are in the order of time, and `pids` those of their dumps. O(n log n).
std::unordered_set<std::uint64_t> hidden_records(const std::vector<MemoryChange>& changes,
                                                 const std::vector<CodeMapping>& mappings,
                                                 const std::vector<pid_t>& pids);

}  // namespace perfmap
