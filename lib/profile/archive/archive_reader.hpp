// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/profile/archive.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Reads the next bytes of the archive as read(2) does: returns their number, 0 at the end, -1 with
/// errno.
using ReadBytes = std::function<ssize_t(std::span<char> to)>;

/// A file of an archive.
struct ArchivedFile {
  std::string name;  ///< one component of a path, neither "." nor ".."; unique in the archive
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
};

/// Takes the files of an archive, one after the other. An error ends the reading.
class ArchiveReceiver {
 public:
  virtual ~ArchiveReceiver() = default;
  virtual Result<void> begin(const ArchivedFile& file) = 0;
  /// The next bytes of the file; all parts together have its size.
  virtual Result<void> add(std::string_view bytes) = 0;
  virtual Result<void> end() = 0;
};

/// An archive that is read.
struct ArchiveInput {
  ReadBytes read;
  std::string name;                 ///< for messages
  std::uint64_t size = UINT64_MAX;  ///< in bytes, as it is stored; UINT64_MAX: unknown
};

/// As unpack_archive().
Result<void> read_archive(ArchiveInput input, const ArchiveLimits& limits,
                          ArchiveReceiver& receiver);

}  // namespace perfmap
