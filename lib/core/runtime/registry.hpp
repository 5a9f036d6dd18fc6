#pragma once

#include <atomic>

#include "runtime/fork_guard.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

/// Every engine of the process, so that fork(2) finds each between two entries.
///
/// A child of a bare clone(2), which runs no handlers, may have been made while another thread was
/// in here: the list makes sense after every single store, and the locks are free in a child.
class Registry {
 public:
  static Registry& get() noexcept { return registry_; }
  void add(ForkAware* engine) noexcept;
  void remove(ForkAware* engine) noexcept;
  void before_fork() noexcept;
  void after_fork() noexcept;
  /// In a child of fork(2).
  void begin_child() noexcept;

  /// For what has to be done by one thread at a time around opening the process's own map.
  SpinMutex& setup_mutex() noexcept { return setup_mutex_; }

 private:
  template <class Act>
  void for_each(Act act) noexcept {
    for (ForkAware* at = first_.load(); at != nullptr; at = at->next_.load()) act(*at);
  }

  static Registry registry_;

  SpinMutex setup_mutex_;
  SpinMutex mutex_;
  std::atomic<ForkAware*> first_{nullptr};
  bool is_set_up_ = false;  // a fork is on its way that has the setup mutex
};

}  // namespace perfmap
