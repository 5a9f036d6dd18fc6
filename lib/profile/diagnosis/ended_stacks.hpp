#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfmap/doctor_recording.hpp"
#include "perfmap/stacks.hpp"

namespace perfmap {

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

}  // namespace perfmap
