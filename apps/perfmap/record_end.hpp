// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <perfmap/profile/record.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

namespace perfmap::app {

/// How a recording ended.
struct RecordEnd {
  std::string who;     ///< the name of the command; empty: living processes were recorded
  std::string lasted;  ///< "2.0 s"
  ProcessEnd command;
  ProcessEnd perf;
  pid_t living = 0;  ///< the command, if it goes on; else 0
  bool ran_out_of_memory = false;
  std::string directory;              ///< of the recording
  std::optional<std::uint64_t> free;  ///< bytes of its file system
};

/// "node ended by SIGSEGV"; empty if it exited with 0.
std::string text_of_end(const RecordEnd& end);

/// Of perf that did not finish the recording: why, and what the recording has.
std::string text_of_cut(const RecordEnd& end);

/// Whether so few bytes are free that a write probably failed because of it.
bool is_full(const std::optional<std::uint64_t>& free) noexcept;
std::string text_of_full(const std::string& directory, std::uint64_t free);

/// How many processes the kernel has killed because memory ran out; 0 if that is unknown.
std::uint64_t count_out_of_memory();

}  // namespace perfmap::app
