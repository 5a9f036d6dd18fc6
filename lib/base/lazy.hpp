// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace perfmap {

/// A value that is built by the first thread that needs it, while others wait. Immutable
/// afterwards.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make&& make) const {
    // call_once() alone takes as long as a whole look-up in a small table.
    if (!is_made_.load(std::memory_order_acquire)) {
      std::call_once(once_, [&] {
        value_.emplace(std::forward<Make>(make)());
        is_made_.store(true, std::memory_order_release);
      });
    }
    return *value_;
  }
  /// Null if it has not been built yet.
  const T* made() const noexcept {
    return is_made_.load(std::memory_order_acquire) ? &*value_ : nullptr;
  }

 private:
  mutable std::once_flag once_;
  mutable std::atomic<bool> is_made_{false};
  mutable std::optional<T> value_;
};

}  // namespace perfmap
