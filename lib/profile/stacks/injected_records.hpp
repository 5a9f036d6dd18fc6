#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <vector>

#include "perfmap/recording.hpp"
#include "stacks/injected_code.hpp"
#include "stacks/injected_survey.hpp"

namespace perfmap {

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
