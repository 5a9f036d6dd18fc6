#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <vector>

#include "perfmap/process_tracker.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

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

}  // namespace perfmap
