#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>

#include "perfmap/recording.hpp"
#include "perfmap/stack_sample.hpp"

namespace perfmap {

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

}  // namespace perfmap
