#pragma once

#include <cstdint>
#include <string>

#include "perfmap/proc_source.hpp"

namespace perfmap {

/// When a process below `proc` began, in nanoseconds of the clock of file times. What has no such
/// time began with the world: 0.
std::int64_t start_time_ns(const ProcSource& process, const std::string& proc);

/// Whether a file was last written before a process began that began then. Both clocks are coarse.
inline bool is_older(const FileFacts& file, std::int64_t start) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return file.mtime_ns < start - kSecond;
}

}  // namespace perfmap
