// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Memory mapped from a file that other processes may truncate: an access to what the file no
/// longer has raises SIGBUS. While a guard is held, pages of zeros take the place of such memory.
/// Needs libc alone.

namespace perfmap {

/// Installs the handler of SIGBUS for the first guard, and restores the former one after the last.
/// Signals for other memory are passed on.
void hold_truncation_guard() noexcept;
void drop_truncation_guard() noexcept;

/// A mapping that the guard stands in for. Movable; the mapping itself belongs to others.
class GuardedRange {
 public:
  GuardedRange() = default;
  GuardedRange(GuardedRange&& other) noexcept;
  GuardedRange& operator=(GuardedRange&& other) noexcept;
  ~GuardedRange() { release(); }

  /// Replaces the range. If too many are in use, it is not guarded.
  void cover(const char* begin, std::size_t size, bool writable) noexcept;
  void release() noexcept;
  /// Whether zeros were put in the place of bytes that the file no longer has.
  bool was_truncated() const noexcept {
    return truncated_ != nullptr && truncated_->load(std::memory_order_relaxed);
  }

 private:
  int slot_ = -1;  // index in the signal handler's table
  const std::atomic<bool>* truncated_ = nullptr;
};

}  // namespace perfmap
