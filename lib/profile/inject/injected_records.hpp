// SPDX-License-Identifier: MIT
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

/// Code of a dump appears at an address, or disappears.
struct CodeMapping {
  static constexpr std::uint64_t kNothing = UINT64_MAX;  ///< as `offset`: the code disappears

  std::uint64_t time = 0;
  AddressRange range;
  std::uint64_t offset = 0;  ///< in the ELF file
  std::uint32_t dump = 0;    ///< the caller's number of the dump
};

/// The effects of a dump's LOAD and MOVE records in time order. `code` is the layout from
/// write_elf_of_all_code(). Without `is_timed`, all happen at `otherwise`. O(n log n).
std::vector<CodeMapping> code_mappings(const Timeline& timeline, const std::vector<CodeInElf>& code,
                                       bool is_timed, std::uint64_t otherwise);

/// Maps the file's frames from the time of the first mapping on. Nothing if the file has no frames,
/// or if code is at their address at any time. O(n).
std::optional<CodeMapping> frames_mapping(const std::vector<CodeMapping>& mappings,
                                          const ElfOfAllCode& elf);

/// The correct ELF machine of a dump recorded on `arch`, if its header names a machine whose code
/// cannot run there; nothing if the header is right, or the machine is unknown.
std::optional<std::uint16_t> machine_recorded(const Jitdump& dump, std::string_view arch) noexcept;

/// A process mapped a jitdump.
struct DumpMarker {
  pid_t pid = 0;
  std::uint64_t time = 0;
  std::string path;
};

/// Executable anonymous memory was mapped. With an empty range: a process began with a copy of its
/// parent's memory or, without a parent, called exec, so that all memory was unmapped.
struct MemoryChange {
  std::uint64_t number = 0;  ///< number of the record in reading order
  std::uint64_t time = 0;
  pid_t pid = 0;
  std::uint32_t size = 0;  ///< of the record
  AddressRange range;
  pid_t parent = 0;
};

/// The facts needed before a recording can be written again.
struct RecordingSurvey {
  RecordingFacts facts;
  std::vector<RecordedEvent> events;
  std::vector<DumpMarker> markers;    ///< each dump once per process
  std::vector<MemoryChange> changes;  ///< in record order
  ProcessTracker processes;           ///< has received all events
  std::unordered_set<pid_t> pids;     ///< of processes with an event
  std::uint64_t bytes = 0;            ///< total size of the records to keep
  std::uint64_t first_time = 0;       ///< of the first record with a time
  std::uint64_t lost_bytes = 0;
  std::uint64_t out_of_order = 0;

  /// Whether all events use the clock of jitdumps.
  bool is_monotonic() const noexcept;
};

/// False for records that only describe the layout of the old file.
bool is_kept(const RecordView& record) noexcept;

/// Reads the recording once. Fails with unsupported if some of its bytes are outside of records.
Result<RecordingSurvey> survey(const Recording& recording, ProcessTracker::OpenModule open_module,
                               Diagnostics& problems);

/// Builds the MMAP2 records of code, with the same sample ids as the recording's own records.
/// Source: Linux, include/uapi/linux/perf_event.h.
class MmapRecords {
 public:
  MmapRecords(const std::vector<RecordedEvent>& events, bool swapped);

  /// The size of a record with this file name. For a long name it may exceed the maximum record
  /// size.
  std::size_t size_of(std::string_view file) const noexcept;
  /// Borrowed until the next call.
  std::string_view make(pid_t pid, const CodeMapping& mapping, std::string_view file);

 private:
  void add_trailer(pid_t pid, std::uint64_t time);
  template <class T>
  void number(T value);

  std::uint64_t trailer_ = 0;  // PERF_SAMPLE_… bits of its trailer
  std::uint64_t id_ = 0;
  bool swapped_;
  std::string bytes_;
};

/// The numbers of the records of anonymous memory that would hide code that is already there.
/// `mappings` are in time order; `pids` are those of their dumps. O(n log n).
std::unordered_set<std::uint64_t> hidden_records(const std::vector<MemoryChange>& changes,
                                                 const std::vector<CodeMapping>& mappings,
                                                 const std::vector<pid_t>& pids);

}  // namespace perfmap
