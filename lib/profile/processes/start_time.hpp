#pragma once

#include <cstdint>

#include "perfmap/input.hpp"
#include "perfmap/proc_source.hpp"

namespace perfmap {

/// Now, by the clock of file times.
std::int64_t file_clock_ns() noexcept;

/// When a process began, by that clock; what has no such time began with the world.
std::int64_t start_time_ns(const ProcSource& process) noexcept;

/// Whether a file was last changed before the process began: then it is an earlier one's. Both
/// times are rounded, so that a second is allowed.
bool is_older_than(const ProcSource& process, const FileFacts& file) noexcept;

}  // namespace perfmap
