#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "perfmap/stack_stitcher.hpp"
#include "stacks/raw_stack.hpp"

namespace perfmap {

/// Stacks that may still change: those that wait for the user's part of their callchain, and, where
/// stacks are stitched, for later samples of their thread. They leave in the order in which they
/// came.
class HeldStacks {
 public:
  HeldStacks(bool stitches, unsigned most_frames);

  void add(std::vector<RawStack> stacks);
  void take(const DeferredCallchain& chain);
  /// Those that need not wait any longer; at the end, all. None as long as they are few: names are
  /// looked up for many at once, on several threads.
  std::vector<RawStack> release(bool is_end);

 private:
  // A thread that never comes back to user space must not hold up all others for ever.
  static constexpr std::size_t kMostWaiting = 100000;
  static constexpr std::size_t kLeastTogether = 256;
  static constexpr std::uint64_t kDistance = std::uint64_t{5} * 1000 * 1000 * 1000;

  bool may_leave(const RawStack& stack) const noexcept;
  void repair(RawStack& stack);

  std::optional<StackStitcher> stitcher_;
  std::deque<RawStack> held_;
  std::uint64_t newest_ = 0;
};

}  // namespace perfmap
