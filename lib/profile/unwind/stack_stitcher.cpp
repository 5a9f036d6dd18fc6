// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <unordered_map>

#include "perfmap/profile/unwinder.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kNever = 0;

/// A return address in a slot of a thread's stack.
struct Place {
  std::uint64_t process = 0;
  pid_t tid = 0;
  Address sp = 0;
  Address pc = 0;
  bool operator==(const Place&) const = default;
};
struct HashPlace {
  std::size_t operator()(const Place& place) const noexcept {
    std::uint64_t hash = place.process * 0x9e3779b97f4a7c15U;
    hash = (hash ^ static_cast<std::uint32_t>(place.tid)) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ place.sp) * 0x9e3779b97f4a7c15U;
    return (hash ^ place.pc) * 0x9e3779b97f4a7c15U;
  }
};

/// The frame above it, and when that was seen first and last.
struct Seen {
  Address sp = 0;
  Address pc = 0;  ///< 0: the thread began there
  bool is_return = true;
  std::uint64_t first = kNever;
  std::uint64_t last = kNever;

  std::uint64_t distance(std::uint64_t time) const noexcept {
    if (time < first) return first - time;
    return time > last ? time - last : 0;
  }
};

}  // namespace

struct StackStitcher::State {
  Options options;
  std::unordered_map<Place, std::vector<Seen>, HashPlace> above;
  std::size_t size = 0;

  void learn(const Place& place, const Seen& next);
  const Seen* nearest(const Place& place, std::uint64_t time) const;
  void forget_before(std::uint64_t time);
};

/// Samples that are adjacent in time and saw the same share an entry.
void StackStitcher::State::learn(const Place& place, const Seen& next) {
  auto& seen = above[place];
  if (!seen.empty()) {
    Seen& last = seen.back();
    const bool is_same = last.sp == next.sp && last.pc == next.pc;
    if (is_same && next.first >= last.last && next.first - last.last < options.max_distance) {
      last.last = next.first;
      return;
    }
  }
  seen.push_back(next);
  ++size;
}

const Seen* StackStitcher::State::nearest(const Place& place, std::uint64_t time) const {
  const auto found = above.find(place);
  if (found == above.end()) return nullptr;
  const Seen* best = nullptr;
  for (const Seen& seen : found->second) {
    if (best == nullptr || seen.distance(time) < best->distance(time)) best = &seen;
  }
  return best != nullptr && best->distance(time) <= options.max_distance ? best : nullptr;
}

void StackStitcher::State::forget_before(std::uint64_t time) {
  for (auto place = above.begin(); place != above.end();) {
    size -= std::erase_if(place->second, [&](const Seen& seen) { return seen.last < time; });
    place = place->second.empty() ? above.erase(place) : std::next(place);
  }
}

StackStitcher::StackStitcher() : StackStitcher(Options()) {}
StackStitcher::StackStitcher(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
StackStitcher::StackStitcher(StackStitcher&&) noexcept = default;
StackStitcher& StackStitcher::operator=(StackStitcher&&) noexcept = default;
StackStitcher::~StackStitcher() = default;

void StackStitcher::learn(std::uint64_t process, pid_t tid, std::uint64_t time,
                          const std::vector<UnwoundFrame>& frames, StackEnd end) {
  constexpr std::size_t kMax = std::size_t{4} << 20;
  if (state_->size > kMax) return;
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    const UnwoundFrame& frame = frames[i];
    const UnwoundFrame& next = frames[i + 1];
    // The leaf's stack position is arbitrary, but its caller's is fixed.
    if (!frame.is_return || frame.source == FrameSource::kernel) continue;
    state_->learn({process, tid, frame.sp, frame.pc},
                  {next.sp, next.pc, next.is_return, time, time});
  }
  if (end != StackEnd::root || frames.empty() || !frames.back().is_return) return;
  state_->learn({process, tid, frames.back().sp, frames.back().pc}, {0, 0, true, time, time});
}

StackEnd StackStitcher::repair(std::uint64_t process, pid_t tid, std::uint64_t time,
                               std::vector<UnwoundFrame>& frames) const {
  while (!frames.empty() && frames.size() < state_->options.max_frames) {
    const UnwoundFrame& last = frames.back();
    const Seen* const next = state_->nearest({process, tid, last.sp, last.pc}, time);
    if (next == nullptr) return StackEnd::truncated;
    if (next->pc == 0) return StackEnd::root;
    if (next->sp <= last.sp) return StackEnd::truncated;
    frames.push_back({next->pc, next->sp, FrameSource::stitched, next->is_return});
  }
  return frames.empty() ? StackEnd::truncated : StackEnd::limit;
}

/// Amortized: a full pass costs as much as was learned since the last one.
void StackStitcher::forget_before(std::uint64_t time) {
  constexpr std::size_t kWorthIt = std::size_t{1} << 18;
  if (state_->size > kWorthIt) state_->forget_before(time);
}

}  // namespace perfmap
