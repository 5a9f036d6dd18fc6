// SPDX-License-Identifier: MIT
#include "writer/process_map.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "writer/engines.hpp"

namespace perfmap::own_map {
namespace {

/// The map of the process. Never destroyed, because background threads of a runtime may write while
/// the process exits. Initialized at compile time, because a child may be forked during the first
/// call.
union Own {
  constexpr Own() noexcept : map("/tmp") {}
  ~Own() {}
  MapEngine map;
};
constinit Own own;

[[maybe_unused]] const bool kListed = (own.map.join_list_at_load(), true);

/// A process that has never used the map is asked for nothing at its end.
[[gnu::destructor]] void end_process() {
  if (ForkHandlers::are_used()) own.map.end_process();
}

constinit thread_local Failure last;
constinit thread_local char copied_from[256] = {};

/// Error convention of CPython's functions.
template <class Act>
int answer(const char* what, Act act) noexcept {
  const int refused = ForkHandlers::install();
  const int error = refused != 0 ? refused : act(own.map);
  if (error == 0) [[likely]]
    return 0;
  last = {what, error};
  errno = error;
  return refused != 0 ? -2 : -1;
}

}  // namespace

int configure(std::string_view directory, const WriterOptions& options, StaleMap stale,
              ForkPolicy fork) noexcept {
  if (directory.empty()) return refuse("directory: empty");
  const int result = answer("cannot configure", [&](MapEngine& map) {
    return map.configure(directory, options, stale, fork);
  });
  if (result != 0 && last.error == EBUSY)
    last = {"the map is open: close it first, with perfmap_state_fini()", EBUSY, true};
  return result;
}
int set_fork_policy(ForkPolicy policy) noexcept {
  return answer("cannot open", [&](MapEngine& map) { return map.set_fork_policy(policy); });
}
ForkPolicy fork_policy() noexcept { return own.map.fork_policy(); }
ForkPolicy began_as() noexcept { return own.map.began_as(); }
MapStart start() noexcept { return own.map.start(); }
int init() noexcept {
  return answer("cannot open", [](MapEngine& map) { return map.init(); });
}
int write(Address start, std::uint64_t size, std::string_view name) noexcept {
  const int result =
      answer("cannot write", [&](MapEngine& map) { return map.write(start, size, name); });
  if (result == 0) [[likely]]
    return 0;
  const char* const why = last.error == EINVAL ? own.map.what_is_wrong(start, size) : nullptr;
  return why != nullptr ? refuse(why) : result;
}
int copy(const char* path) noexcept {
  if (path == nullptr) return refuse("path: NULL");
  const int result = answer("cannot copy", [&](MapEngine& map) { return map.copy(path); });
  if (result == 0) return 0;
  const std::size_t size = std::min(std::strlen(path), sizeof copied_from - 1);
  std::memcpy(copied_from, path, size);
  copied_from[size] = '\0';
  last.from = copied_from;
  return result;
}
int flush() noexcept {
  return answer("cannot write", [](MapEngine& map) { return map.flush(); });
}
int fini() noexcept {
  return answer("cannot close", [](MapEngine& map) { return map.close(); });
}
ForkSafeFile& file() noexcept { return own.map; }
Failure last_failure() noexcept { return last; }
int refuse(const char* why) noexcept {
  last = {why, EINVAL, true};
  errno = EINVAL;
  return -1;
}

}  // namespace perfmap::own_map
