#pragma once

#include <cstdint>
#include <string>

#include "perfmap/proc_source.hpp"

namespace perfmap {

/// Files' times are coarser than this, and so are clocks that were set.
inline constexpr std::int64_t kTimeSlack = 1'000'000'000;

/// When the machine of that /proc began, by the clock of file times.
std::int64_t boot_time_ns(const std::string& proc);

/// When a process began, by the same clock; what has no such time began with the world.
std::int64_t start_time_ns(const ProcSource& process, std::int64_t boot_ns) noexcept;
inline std::int64_t start_time_ns(const ProcSource& process, const std::string& proc) {
  return start_time_ns(process, boot_time_ns(proc));
}

}  // namespace perfmap
