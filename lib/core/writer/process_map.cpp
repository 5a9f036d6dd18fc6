#include <cerrno>

#include "writer/engines.hpp"

namespace perfmap {
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

[[maybe_unused]] const bool kListed = (own.map.join_list(), true);

[[gnu::destructor]] void end_process() { own.map.end_process(); }

/// Error convention of CPython's functions.
template <class Act>
int answer(Act act) noexcept {
  const int refused = ForkHandlers::install();
  const int error = refused != 0 ? refused : act(own.map);
  if (error == 0) return 0;
  errno = error;
  return refused != 0 ? -2 : -1;
}

}  // namespace

int ProcessMap::configure(const ProcessMapOptions& options) noexcept {
  return answer([&](MapEngine& map) {
    return map.configure(options.directory, options.writer, options.stale, options.fork);
  });
}
int ProcessMap::set_fork_policy(ForkPolicy policy) noexcept {
  return answer([&](MapEngine& map) { return map.set_fork_policy(policy); });
}
ForkPolicy ProcessMap::fork_policy() noexcept { return own.map.fork_policy(); }
ForkPolicy ProcessMap::began_as() noexcept { return own.map.began_as(); }
MapStart ProcessMap::start() noexcept { return own.map.start(); }
int ProcessMap::init() noexcept {
  return answer([](MapEngine& map) { return map.init(); });
}
int ProcessMap::write(Address start, std::uint64_t size, std::string_view name) noexcept {
  return answer([&](MapEngine& map) { return map.write(start, size, name); });
}
int ProcessMap::copy(const char* path) noexcept {
  return answer([&](MapEngine& map) { return path == nullptr ? EINVAL : map.copy(path); });
}
int ProcessMap::flush() noexcept {
  return answer([](MapEngine& map) { return map.flush(); });
}
int ProcessMap::fini() noexcept {
  return answer([](MapEngine& map) { return map.close(); });
}

}  // namespace perfmap
