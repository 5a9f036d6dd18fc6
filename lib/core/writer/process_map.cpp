#include "perfmap/process_map.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <new>
#include <unistd.h>

#include "writer/engine.hpp"
#include "writer/fork_guard.hpp"

namespace perfmap {
namespace {

/// The one state of the process. Everything but write() goes through the setup lock.
class Own final : public ForkAware {
 public:
  Own() { engine_.configure({.own_map = true}, true); }
  void register_engines() {
    Registry::get().add(&engine_);
    Registry::get().add(this);
  }

  int configure(const ProcessMapOptions& options) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    if (const int error = enter_process(); error != 0) return error;
    if (engine_.is_open()) return EBUSY;
    if (options.directory.size() >= directory_.size()) return ENAMETOOLONG;
    options.directory.copy(directory_.data(), directory_.size());
    directory_[options.directory.size()] = '\0';
    WriterOptions writer = options.writer;
    writer.own_map = true;
    engine_.configure(writer, true);
    stale_ = options.stale;
    fork_ = options.fork;
    began_as_ = ForkPolicy::fresh;
    return 0;
  }

  int set_fork_policy(ForkPolicy policy) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    const int error = enter_process();
    fork_ = policy;
    return error;
  }

  ForkPolicy fork_policy() const noexcept { return fork_.load(); }

  ForkPolicy began_as() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    return enter_process() == 0 ? began_as_.load() : ForkPolicy::inherit;
  }

  int init() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    return open();
  }

  MapStart start() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    return opened_in_.load() == ForkGuard::generation() ? engine_.start() : MapStart::none;
  }

  int write(Address start, std::uint64_t size, std::string_view name) {
    const int error = try_write(start, size, name);
    if (error != Engine::kAtCap) [[likely]]
      return error;
    // No lock is held: the callback may use the map.
    const int again = engine_.ask_for_room() ? try_write(start, size, name) : EFBIG;
    return again == Engine::kAtCap ? EFBIG : again;
  }

  int copy(const char* path) {
    if (path == nullptr) return EINVAL;
    return opened([&] { return engine_.copy(path); });
  }

  int flush() {
    const bool ours = opened_in_.load() == ForkGuard::generation();
    const int error = ours ? engine_.flush() : 0;
    if (ours && error != EBADF) return error;
    const std::lock_guard lock(Registry::get().setup_mutex());
    const int entered = error == EBADF ? open() : enter_process();
    return entered != 0 ? entered : engine_.flush();
  }

  int fini() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    const int error = enter_process();
    if (error != 0) leave_parent();
    return error != 0 ? error : engine_.close();
  }

  /// What is buffered is written. Threads that still run may write on: nothing of theirs is kept
  /// back, because nobody would write it later.
  void at_exit() {
    const std::lock_guard lock(Registry::get().setup_mutex());
    if (opened_in_.load() != ForkGuard::generation()) leave_parent();
    engine_.close();
    engine_.write_through();
  }

 private:
  /// Children inherit from a descriptor: if somebody has closed it, the map is opened again.
  bool before_fork() noexcept override {
    const bool ours = opened_in_.load() == ForkGuard::generation();
    if (fork_ == ForkPolicy::inherit && ours && engine_.is_open() && !engine_.has_file()) open();
    return true;
  }
  void after_fork(bool) noexcept override {}
  /// A failure shows at the child's first call, which tries again.
  void begin_child(bool) noexcept override {
    const std::lock_guard lock(Registry::get().setup_mutex());
    enter_process();
  }

  int try_write(Address start, std::uint64_t size, std::string_view name) {
    // The usual case costs one lock, the engine's: the map is open, and it is ours.
    const int error = engine_.write(start, size, name);
    if (error != EBADF) [[likely]]
      return error;
    return opened([&] { return engine_.write(start, size, name); });
  }

  /// In a child, once: lets go of the parent's map, as the policy says.
  int enter_process() noexcept {
    if (opened_in_.load() == ForkGuard::generation()) return 0;
    if (fork_ == ForkPolicy::inherit && engine_.has_file() && !is_off()) {
      std::array<char, kMaxPath> path;
      const int error = engine_.inherit(own_path(path), stale_ == StaleMap::empty);
      if (error != 0) return error;
      began_as_ = ForkPolicy::inherit;
      opened_in_.store(ForkGuard::generation());
      return 0;
    }
    // In the process that came first there is no parent's.
    const bool off = is_off() || (fork_ == ForkPolicy::off && opened_in_.load() != 0);
    began_as_ = off ? ForkPolicy::off : ForkPolicy::fresh;
    leave_parent();
    return 0;
  }

  bool is_off() const noexcept { return began_as_ == ForkPolicy::off; }

  void leave_parent() noexcept {
    std::array<char, kMaxPath> path;
    engine_.abandon(own_path(path));
    opened_in_.store(ForkGuard::generation());
  }

  /// Opens the map where it is closed, and acts before another thread can close it again.
  template <class Act>
  int opened(Act act) {
    const std::lock_guard lock(Registry::get().setup_mutex());
    const int error = open();
    return error != 0 || is_off() ? error : act();
  }

  int open() noexcept {
    if (const int error = enter_process(); error != 0) return error;
    if (is_off()) return 0;
    std::array<char, kMaxPath> path;
    return engine_.open(own_path(path), stale_ == StaleMap::empty);
  }

  static constexpr std::size_t kMaxDirectory = 4000;
  static constexpr std::size_t kMaxPath = kMaxDirectory + 32;

  const char* own_path(std::array<char, kMaxPath>& path) const noexcept {
    std::snprintf(path.data(), path.size(), "%s/perf-%ld.map", directory_.data(),
                  static_cast<long>(::getpid()));
    return path.data();
  }

  Engine engine_;
  // Nothing that a child made in the middle of a change could not read.
  std::array<char, kMaxDirectory> directory_ = {"/tmp"};
  std::atomic<ForkPolicy> fork_{ForkPolicy::fresh};
  std::atomic<StaleMap> stale_{StaleMap::empty};
  std::atomic<ForkPolicy> began_as_{ForkPolicy::fresh};
  std::atomic<unsigned> opened_in_{0};  // the generation whose map the engine has, if any
};

constinit SpinMutex making;
constinit std::atomic<Own*> made{nullptr};
alignas(Own) std::byte room[sizeof(Own)];

/// Never destroyed: background threads of a runtime may write while the process exits. And no
/// static of a function: a child that is made while another thread is in here would wait for it for
/// ever.
Own& own() {
  if (Own* const known = made.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(making);
  if (Own* const known = made.load()) return *known;
  Own* const own = new (room) Own;
  made.store(own, std::memory_order_release);
  own->register_engines();  // in this order: a child makes again what is not `made`
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

struct AtExit {
  ~AtExit() {
    if (made.load() == nullptr) return;
    answer([] {
      own().at_exit();
      return 0;
    });
  }
};
const AtExit at_exit;

}  // namespace

int ProcessMap::configure(const ProcessMapOptions& options) noexcept {
  return answer([&] { return own().configure(options); });
}
int ProcessMap::set_fork_policy(ForkPolicy policy) noexcept {
  return answer([&] { return own().set_fork_policy(policy); });
}
MapStart ProcessMap::start() noexcept {
  MapStart start = MapStart::none;
  answer([&] {
    start = own().start();
    return 0;
  });
  return start;
}
ForkPolicy ProcessMap::began_as() noexcept {
  ForkPolicy began = ForkPolicy::fresh;
  answer([&] {
    began = own().began_as();
    return 0;
  });
  return began;
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
ForkPolicy ProcessMap::fork_policy() noexcept {
  ForkPolicy policy = ForkPolicy::fresh;
  answer([&] {
    policy = own().fork_policy();
    return 0;
  });
  return policy;
}
int ProcessMap::fini() noexcept {
  return answer([] { return own().fini(); });
}

}  // namespace perfmap
