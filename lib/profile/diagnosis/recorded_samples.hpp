#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/process.hpp"
#include "perfmap/profile/recording.hpp"

namespace perfmap {

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

/// What a recording says of its processes.
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
};

/// The processes that it has memory from in which code of a runtime may lie: the nearest first.
std::vector<pid_t> inherits_from(const RecordedProcess& process);

/// Goes over a recording once. `is_named` is asked for each address that a runtime's code may have.
RecordedSamples read_samples(
    const Recording& recording,
    const std::function<bool(pid_t pid, Address address, std::uint64_t time)>& is_named);

}  // namespace perfmap
