#include "stacks/held_stacks.hpp"

#include <algorithm>

namespace perfmap {

HeldStacks::HeldStacks(bool stitches, unsigned most_frames) {
  if (stitches) stitcher_.emplace(StackStitcher::Options{kDistance, most_frames});
}

void HeldStacks::add(std::vector<RawStack> stacks) {
  for (RawStack& stack : stacks) {
    newest_ = std::max(newest_, stack.time);
    if (stitcher_) {
      stitcher_->learn(stack.moment->program, stack.tid, stack.time, stack.frames, stack.end);
    }
    held_.push_back(std::move(stack));
  }
}

void HeldStacks::take(const DeferredCallchain& chain) {
  for (auto stack = held_.rbegin(); stack != held_.rend(); ++stack) {
    if (stack->cookie != chain.cookie || stack->tid != chain.tid) continue;
    stack->cookie.reset();
    add_deferred(chain.callchain, *stack);
  }
}

bool HeldStacks::may_leave(const RawStack& stack) const noexcept {
  if (stack.cookie && held_.size() < kMostWaiting) return false;
  return !stitcher_ || newest_ - stack.time > kDistance;
}

void HeldStacks::repair(RawStack& stack) {
  const std::size_t before = stack.frames.size();
  stack.end = stitcher_->repair(stack.moment->program, stack.tid, stack.time, stack.frames);
  stack.was_stitched = stack.frames.size() > before;
}

std::vector<RawStack> HeldStacks::release(bool is_end) {
  std::vector<RawStack> leaving;
  if (!is_end && held_.size() < kLeastTogether) return leaving;
  while (!held_.empty() && (is_end || may_leave(held_.front()))) {
    RawStack& stack = held_.front();
    if (stitcher_ && stack.end == StackEnd::truncated) repair(stack);
    leaving.push_back(std::move(stack));
    held_.pop_front();
  }
  if (stitcher_ && !leaving.empty()) {
    const std::uint64_t oldest = leaving.back().time;
    stitcher_->forget_before(oldest > kDistance ? oldest - kDistance : 0);
  }
  return leaving;
}

}  // namespace perfmap
