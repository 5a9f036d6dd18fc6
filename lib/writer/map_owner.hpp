// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// Whose map a file is. A process ID alone does not say it: containers that share /tmp both have a
/// process 1, numbers are used again, and exec(2) keeps them. Needs libc alone.

namespace perfmap {

enum class MapOwner : std::uint8_t {
  unknown,         ///< no mark: written by others, or on a file system without extended attributes
  this_image,      ///< this process, since its last exec(2)
  former_image,    ///< this process, before exec(2)
  another_process  ///< also in another container, or before the machine was started
};

/// Reads the mark of an open file.
MapOwner owner_of(int fd) noexcept;
/// Marks it as the map of this process: the extended attribute user.perfmap.owner. Failures are
/// ignored.
void mark_as_ours(int fd) noexcept;

/// The 22nd field of /proc/self/stat: when this process began, in clock ticks since the machine was
/// started. False if /proc does not say.
bool get_start_ticks(std::uint64_t& ticks) noexcept;

}  // namespace perfmap
