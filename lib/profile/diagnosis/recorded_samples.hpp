#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <vector>

#include "perfmap/recording.hpp"

namespace perfmap {

/// Samples of code that a process's runtime made: those whose address lies in executable memory
/// that no file names.
struct JitSamples {
  std::uint64_t count = 0;
  std::uint64_t unnamed = 0;
  std::map<Address, std::uint64_t> pages;  ///< where the unnamed ones are, by page
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
  /// What processes have mapped to run, as of the last program.
  std::map<pid_t, std::set<std::string>> files;
  RecordingFacts facts;
  std::vector<RecordedEvent> events;

  /// Whether all events have the clock of jitdumps.
  bool is_monotonic() const noexcept;
};

/// jit-PID.dump, wherever it lies.
bool is_dump_name(std::string_view path) noexcept;

/// Goes over a recording once. `is_named` is asked for each address that a runtime's code may have.
RecordedSamples read_samples(
    const Recording& recording,
    const std::function<bool(pid_t pid, Address address, std::uint64_t time)>& is_named);

}  // namespace perfmap
