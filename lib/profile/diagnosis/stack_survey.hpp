#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnosis/recording_findings.hpp"
#include "perfmap/doctor_recording.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"

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

class StackCounter;

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

/// About frames without a name in such files.
void add_symbol_findings(const RecordingCase& facts, const std::vector<StrippedFile>& stripped,
                         RecordingAdvice& advice);

}  // namespace perfmap
