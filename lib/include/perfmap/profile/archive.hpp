// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/types.hpp"

/// Archives of recording directories: tar, compressed by zstd; see docs/format-recording.md. Paths
/// may be any; archives are not trusted.

namespace perfmap {

/// The suffix of an archive that is written.
inline constexpr std::string_view kArchiveSuffix = ".tar.zst";

/// What an archive may have at most.
struct ArchiveLimits {
  std::uint64_t max_bytes = std::uint64_t{64} << 30;  ///< of all its files together
  std::size_t max_entries = 65'536;                   ///< files and directories
  /// How many times the size of the archive its files may have, from 64 MiB on. A recording stays
  /// below, even if all its stacks are equal: perf's samples have at most 64 KiB, and each has its
  /// own time, of 8 bytes.
  std::uint64_t max_expansion = 8192;
};

/// Whether this is a regular file that begins like a tar archive (ustar, pax, GNU), plain or
/// compressed by zstd or gzip. Detected from its content. False if it cannot be read.
PERFMAP_API bool is_archive(const std::string& path);

/// Writes the files of an archive of a recording directory into `directory`, which must be empty,
/// and only its owner's. They get mode 0600 and their modification times.
///
/// The archive is one of a directory, with its name or without, as `perfmap record --archive` and
/// `tar -cf` make it. Refuses links, devices, sparse files, subdirectories, names that lead out of
/// the directory, and names that occur twice. A damaged or truncated archive, and one with more
/// bytes after its end than padding, is an error, as is one without a recording. Files that were
/// written before an error remain, for the caller to remove.
///
/// Fails with refused, bad_format, too_large (limits) or io, of which sys_errno is ENOSPC if the
/// file system of the directory is too small; nothing of the file is written then.
/// O(size) time; memory for one window of at most 128 MiB, and the names.
PERFMAP_API Result<void> unpack_archive(const std::string& path, const std::string& directory,
                                        const ArchiveLimits& limits = {});

/// Writes the regular files of a recording directory to an archive of mode 0600, which replaces
/// `path` when it is complete. Subdirectories, links and special files are left out. The entries
/// are below a directory with the archive's name. Returns the paths of the files in the directory.
/// Fails with io, and with refused as OutputFile::replace().
PERFMAP_API Result<std::vector<std::string>> write_archive(const std::string& directory,
                                                           const std::string& path);

}  // namespace perfmap
