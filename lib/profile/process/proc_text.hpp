// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/profile/process.hpp"

namespace perfmap {

/// The fields that we need of /proc/PID/stat.
struct StatLine {
  std::string_view comm;
  char state = 0;
  pid_t parent = 0;
  std::uint64_t flags = 0;  ///< PF_... of the kernel
  std::uint64_t start = 0;

  /// A zombie has only its pid; while a process exits, its memory goes first.
  bool lives() const noexcept {
    constexpr std::uint64_t kExiting = 4;
    return state != 'Z' && state != 'X' && state != 'x' && (flags & kExiting) == 0;
  }
};
/// Nothing if the text is malformed. Borrows the text.
std::optional<StatLine> parse_stat(std::string_view text) noexcept;

/// The numbers on the line `key` ("NSpid:") of /proc/PID/status; at most 64.
std::vector<std::int64_t> status_numbers(std::string_view text, std::string_view key);

/// Strings that each end with a NUL; text after the last NUL counts as well.
std::vector<std::string> split_at_nul(std::string_view text);

/// File times and adjusted clocks may be off by this much.
inline constexpr std::int64_t kTimeSlack = 1'000'000'000;

/// The current time on the clock of file times.
std::int64_t file_clock_ns() noexcept;

/// When the machine of that /proc booted, on that clock.
std::int64_t boot_time_ns(const std::string& proc);

/// When a process began, on that clock; 0 if it has no start time.
std::int64_t start_time_ns(const ProcSource& process, std::int64_t boot_ns) noexcept;
inline std::int64_t start_time_ns(const ProcSource& process, const std::string& proc) {
  return start_time_ns(process, boot_time_ns(proc));
}

/// Whether a file was last changed before the process began, so that it belongs to an earlier one.
bool is_older_than(const ProcSource& process, const std::string& proc, const FileFacts& file);

}  // namespace perfmap
