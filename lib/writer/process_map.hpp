// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "writer/fork_safe_file.hpp"

/// The map of the calling process: what ProcessMap documents, without its strings. Functions that
/// return an int return 0, or -1 or -2 with errno set. Needs libc alone.

namespace perfmap::own_map {

int configure(std::string_view directory, const WriterOptions& options, StaleMap stale,
              ForkPolicy fork) noexcept;
int set_fork_policy(ForkPolicy policy) noexcept;
ForkPolicy fork_policy() noexcept;
ForkPolicy began_as() noexcept;
MapStart start() noexcept;
int init() noexcept;
int write(Address start, std::uint64_t size, std::string_view name) noexcept;
int copy(const char* path) noexcept;
int flush() noexcept;
int fini() noexcept;
ForkSafeFile& file() noexcept;
/// The last failed call of the calling thread; `error` is 0 if there was none.
struct Failure {
  const char* what = "";  ///< "cannot open"
  int error = 0;
  bool is_whole = false;       ///< `what` is all that there is to say
  const char* from = nullptr;  ///< of copy(): the path of the file to copy, which may be cut
};
Failure last_failure() noexcept;
/// Notes a call whose argument was refused before it came here: -1 and EINVAL. `why` is static.
int refuse(const char* why) noexcept;

}  // namespace perfmap::own_map
