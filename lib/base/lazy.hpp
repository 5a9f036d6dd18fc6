// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace perfmap {

/// Runs something in the first thread that comes, while others wait, and never again unless it
/// throws. Not std::call_once(): an exception that passes through it ends a program whose unwinder
/// is linked statically, because it passes through libc.
class Once {
 public:
  template <class Run>
  void run(Run&& run) const {
    // A lock alone takes as long as a whole look-up in a small table.
    if (is_done()) return;
    const std::scoped_lock lock(mutex_);
    if (is_done()) return;
    std::forward<Run>(run)();
    is_done_.store(true, std::memory_order_release);
  }
  bool is_done() const noexcept { return is_done_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  mutable std::atomic<bool> is_done_{false};
};

/// A value that is built by the first thread that needs it, while others wait. Immutable
/// afterwards.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make&& make) const {
    once_.run([&] { value_.emplace(std::forward<Make>(make)()); });
    return *value_;
  }
  /// Null if it has not been built yet.
  const T* made() const noexcept { return once_.is_done() ? &*value_ : nullptr; }

 private:
  Once once_;
  mutable std::optional<T> value_;
};

}  // namespace perfmap
