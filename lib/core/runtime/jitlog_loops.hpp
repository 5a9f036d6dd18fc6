#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "perfmap/jitlog_writer.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

/// The loops of a log: names, as they are written, by numbers from 1. One that is there stays where
/// it is, so that its name is found without a lock.
class JitlogLoops {
 public:
  /// The number of that name, which may be new; 0: there are too many.
  JitlogLoop add(std::string name);
  bool has(JitlogLoop loop) const noexcept {
    return loop - 1 < count_.load(std::memory_order_acquire);
  }
  /// has() it.
  std::string_view name(JitlogLoop loop) const noexcept {
    const Place at = place(loop);
    return chunks_[at.chunk][at.index];
  }

  /// Around fork(2), so that a child finds them whole.
  bool lock_for_fork() noexcept { return mutex_.lock_for_fork(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  /// Chunk n holds 2^n loops.
  static constexpr std::size_t kChunks = 31;
  struct Place {
    std::size_t chunk;
    std::size_t index;
  };
  static Place place(JitlogLoop loop) noexcept {
    const auto chunk = static_cast<std::size_t>(std::bit_width(loop)) - 1;
    return {chunk, loop - (std::size_t{1} << chunk)};
  }

  SpinMutex mutex_;
  std::unordered_map<std::string, JitlogLoop> numbers_;  // whose keys stay where they are
  std::array<std::unique_ptr<std::string_view[]>, kChunks> chunks_;  // of numbers_
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace perfmap
