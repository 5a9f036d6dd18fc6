#pragma once

#include <atomic>

namespace perfmap {

/// How the writers of a process live through fork(2) and bare clone(2): each one sees afterwards
/// that it is in a child.
///
/// A word on a page that the kernel wipes in every child (MADV_WIPEONFORK, Linux 4.14) says so at
/// the price of a load, with or without handlers, and is right in a pid namespace where the child
/// has its parent's number. Without that page, getpid(2) and a handler of fork(2) say it.
class ForkGuard {
 public:
  /// Installs the handlers once; 0 or an errno value.
  static int install() noexcept;
  /// Never 0, and another number in every child than in any of its ancestors. Async-signal-safe;
  /// shared by those who share memory, such as the child of vfork(2).
  static unsigned generation() noexcept {
#ifdef PERFMAP_NO_FORK_CHECK  // to measure what it costs
    return 1;
#else
    const unsigned now = word_.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
    return now != 0 ? now : renew();
#endif
  }

 private:
  static unsigned renew() noexcept;

  static std::atomic<unsigned> no_word_;  // always 0
  static std::atomic<std::atomic<unsigned>*> word_;
};

/// An engine with a lock of its own, which the Registry takes around fork(2).
class ForkAware {
 public:
  virtual void before_fork() noexcept = 0;
  /// In the parent and in the child.
  virtual void after_fork() noexcept = 0;
  /// In the child, before fork(2) returns there, when all locks are free again.
  virtual void begin_child() noexcept {}

 protected:
  ~ForkAware() = default;

 private:
  friend class Registry;
  std::atomic<ForkAware*> next_{nullptr};
};

}  // namespace perfmap
