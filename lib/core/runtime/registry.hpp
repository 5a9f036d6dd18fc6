#pragma once

#include <mutex>
#include <vector>

#include "runtime/fork_guard.hpp"

namespace perfmap {

/// Every engine of the process, so that fork(2) finds none of their locks held by a thread that the
/// child does not have.
class Registry {
 public:
  static Registry& get() noexcept;
  void add(ForkAware* engine);
  void remove(ForkAware* engine) noexcept;
  void lock_all() noexcept;
  void unlock_all() noexcept;

  /// For what has to be done by one thread at a time around opening the process's own map.
  std::mutex& setup_mutex() noexcept { return setup_mutex_; }

 private:
  std::mutex setup_mutex_;
  std::mutex mutex_;
  std::vector<ForkAware*> engines_;
};

}  // namespace perfmap
