#include "perfmap/process_map.hpp"

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>

#include "runtime/engine.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

/// The one state of the process. Everything but write() goes through the setup lock.
class Own {
 public:
  Own() { Registry::get().add(&engine_); }

  int configure(const ProcessMapOptions& options) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    enter_child();
    if (engine_.is_open()) return EBUSY;
    options_ = options;
    options_.writer.own_map = true;
    engine_.configure(options_.writer, options_.fork == ForkPolicy::copy);
    disabled_.store(false);
    parent_.clear();
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
    return opened([&] { return engine_.write(start, size, name); });
  }

  int copy(const char* path) {
    if (path == nullptr) return EINVAL;
    return opened([&] { return engine_.copy(path); });
  }

  int flush() { return opened_in_.load() == ForkGuard::generation() ? engine_.flush() : 0; }

  int fini() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    enter_child();
    return engine_.close();
  }

  /// What is buffered is written. Threads that still run may write on: nothing of theirs is kept
  /// back, because nobody would write it later.
  void at_exit() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    enter_child();
    engine_.close();
    options_.writer.buffer_bytes = 0;
    options_.writer.mapped = false;
    engine_.configure(options_.writer);
  }

 private:
  /// In a child, once: lets go of the parent's map, and remembers what the policy says.
  void enter_child() {
    const unsigned generation = ForkGuard::generation();
    if (opened_in_.load() == generation) return;
    if (options_.fork == ForkPolicy::disable) disabled_.store(true);
    if (options_.fork == ForkPolicy::copy && engine_.is_open()) parent_ = engine_.path();
    engine_.abandon();
    opened_in_.store(generation);
  }

  /// Opens the map where it is closed, and acts before another thread can close it again.
  template <class Act>
  int opened(Act act) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    const int error = open();
    return error != 0 || disabled_.load() ? error : act();
  }

  int open() {
    enter_child();
    if (disabled_.load() || engine_.is_open()) return 0;
    if (const int error = engine_.open(own_path()); error != 0) return error;
    const std::string parent = std::exchange(parent_, {});
    return parent.empty() ? 0 : engine_.copy(parent);
  }
  std::string own_path() const {
    return options_.directory + "/perf-" + std::to_string(::getpid()) + ".map";
  }

  Engine engine_;
  ProcessMapOptions options_{.writer = {.own_map = true}};
  std::string parent_;  // the map that ours starts as a copy of; empty: none
  std::atomic<unsigned> opened_in_{0};
  std::atomic<bool> disabled_{false};
};

struct AtExit {
  Own* own;
  ~AtExit();
};

/// Never destroyed: background threads of a runtime may write while the process exits.
Own& own() {
  static Own* const own = new Own;
  static const AtExit at_exit{own};
  return *own;
}

/// Runs `act` with nothing escaping, and answers as CPython's functions do.
template <class Act>
int answer(Act act) noexcept {
  int error = 0;
  try {
    if (const int refused = ForkGuard::install(); refused != 0) {
      errno = refused;
      return -2;
    }
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

AtExit::~AtExit() {
  answer([this] {
    own->at_exit();
    return 0;
  });
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
