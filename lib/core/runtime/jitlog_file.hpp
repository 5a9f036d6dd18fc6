#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/record_file.hpp"
#include "bytes/whole_file.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// The file of a log, for one thread at a time: whole sections, or nothing.
class JitlogFile {
 public:
  /// Makes it, or empties the log that is there.
  Result<void> open(const std::string& path, bool own);
  /// A copy of the descriptor.
  int open(int fd) noexcept { return file_.open(fd); }
  /// Begins, in a child, the file that will be at `path`, with what this one has.
  int begin_copy(WholeFile& copy, const std::string& path) noexcept;
  /// Goes on with the copy, which appears at `path`. On failure everything is as it was.
  int become(WholeFile& copy, const std::string& path, bool own) noexcept;
  /// Both, with one writev(2). 0 or an errno value.
  int append(std::string_view first, std::string_view second) noexcept;
  /// 0 or an errno value. The log is another writer's to open, whatever children still have of it.
  int end() noexcept;
  /// A child's copy: the log is its parent's.
  void let_go() noexcept { file_.close(); }

 private:
  RecordFile file_;
};

}  // namespace perfmap
