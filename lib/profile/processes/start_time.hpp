#pragma once

#include <cstdint>
#include <string>

#include "perfmap/input.hpp"
#include "perfmap/proc_source.hpp"

namespace perfmap {

/// Files' times are coarser than this, and so are clocks that were set.
inline constexpr std::int64_t kTimeSlack = 1'000'000'000;

/// Now, by the clock of file times.
std::int64_t file_clock_ns() noexcept;

/// When the machine of that /proc began, by that clock.
std::int64_t boot_time_ns(const std::string& proc);

/// When a process began, by that clock; what has no such time began with the world.
std::int64_t start_time_ns(const ProcSource& process, std::int64_t boot_ns) noexcept;
inline std::int64_t start_time_ns(const ProcSource& process, const std::string& proc) {
  return start_time_ns(process, boot_time_ns(proc));
}

/// Whether a file was last changed before the process began: then it is an earlier one's.
bool is_older_than(const ProcSource& process, const std::string& proc, const FileFacts& file);

}  // namespace perfmap
