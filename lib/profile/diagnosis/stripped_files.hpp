#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/recording_findings.hpp"
#include "perfmap/process_tracker.hpp"

namespace perfmap {

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
