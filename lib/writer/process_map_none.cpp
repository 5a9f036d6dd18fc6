// SPDX-License-Identifier: MIT
// For systems without perf maps: a runtime can still call all functions.

#include <cerrno>

#include "writer/engines.hpp"
#include "writer/process_map.hpp"

namespace perfmap::own_map {

int configure(std::string_view, const WriterOptions&, StaleMap, ForkPolicy) noexcept { return 0; }
int set_fork_policy(ForkPolicy) noexcept { return 0; }
ForkPolicy fork_policy() noexcept { return ForkPolicy::fresh; }
ForkPolicy began_as() noexcept { return ForkPolicy::fresh; }
MapStart start() noexcept { return MapStart::none; }
int init() noexcept { return 0; }
int write(Address, std::uint64_t, std::string_view) noexcept { return 0; }
int copy(const char*) noexcept { return 0; }
int flush() noexcept { return 0; }
int fini() noexcept { return 0; }
ForkSafeFile& file() noexcept {
  static constinit MapEngine none{"/tmp"};
  return none;
}
Failure last_failure() noexcept { return {}; }
int refuse(const char*) noexcept {
  errno = EINVAL;
  return -1;
}

}  // namespace perfmap::own_map
