#include "perfmap/process_map.hpp"

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <unistd.h>

#include "runtime/registry.hpp"

namespace perfmap {
namespace {

/// The one state of the process. Everything but write() goes through the setup lock.
class Own {
 public:
  Own() { Registry::get().add(&engine_); }

  int configure(const ProcessMapOptions& options) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    if (engine_.is_open()) return EBUSY;
    options_ = options;
    options_.writer.own_map = true;
    engine_.configure(options_.writer);
    return 0;
  }

  int init() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    return open();
  }

  int write(Address start, std::uint64_t size, std::string_view name) {
    // The usual case costs one lock, the engine's: the map is open, and it is ours.
    if (opened_in_.load(std::memory_order_relaxed) == ForkGuard::generation()) {
      const int error = engine_.write(start, size, name);
      if (error != EBADF) return error;
    }
    if (const int error = init(); error != 0) return error;
    return disabled_.load() ? 0 : engine_.write(start, size, name);
  }

  int copy(const char* path) {
    if (const int error = init(); error != 0) return error;
    return disabled_.load() ? 0 : engine_.copy(path);
  }

  int flush() { return opened_in_.load() == ForkGuard::generation() ? engine_.flush() : 0; }

  int fini() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    if (opened_in_.load() == ForkGuard::generation()) return engine_.close();
    engine_.abandon();
    return 0;
  }

 private:
  /// Opens the map of this process; in a child of one that had it open, as the policy says.
  int open() {
    const unsigned generation = ForkGuard::generation();
    const bool child = opened_in_.load() != generation;
    const bool inherited = child && engine_.is_open();
    const std::string parent = engine_.path();
    if (child) engine_.abandon();
    opened_in_.store(generation);
    if (inherited && options_.fork == ForkPolicy::disable) disabled_.store(true);
    if (disabled_.load() || engine_.is_open()) return 0;
    const int error = engine_.open(own_path());
    if (error != 0 || !inherited || options_.fork != ForkPolicy::copy) return error;
    return engine_.copy(parent);
  }
  std::string own_path() const {
    return options_.directory + "/perf-" + std::to_string(::getpid()) + ".map";
  }

  Engine engine_;
  ProcessMapOptions options_{.writer = {.own_map = true}};
  std::atomic<unsigned> opened_in_{0};
  std::atomic<bool> disabled_{false};
};

Own& own() {
  static Own own;
  return own;
}

/// Runs `act` with nothing escaping, and answers as CPython's functions do.
template <class Act>
int answer(Act act) noexcept {
  int error = 0;
  try {
    if (ForkGuard::install() != 0) return -2;
    error = act();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  } catch (...) {
    error = ENOLCK;  // a lock that could not be taken
  }
  if (error == 0) return 0;
  errno = error;
  return error == ENOLCK ? -2 : -1;
}

}  // namespace

int ProcessMap::configure(const ProcessMapOptions& options) noexcept {
  return answer([&] { return own().configure(options); });
}
int ProcessMap::init() noexcept {
  return answer([] { return own().init(); });
}
int ProcessMap::write(Address start, std::uint64_t size, std::string_view name) noexcept {
  return answer([&] { return own().write(start, size, name); });
}
int ProcessMap::copy(const char* path) noexcept {
  return answer([&] { return own().copy(path); });
}
int ProcessMap::flush() noexcept {
  return answer([] { return own().flush(); });
}
int ProcessMap::fini() noexcept {
  return answer([] { return own().fini(); });
}

}  // namespace perfmap
