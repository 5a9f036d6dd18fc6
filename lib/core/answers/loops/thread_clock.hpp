#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/pypylog.hpp"

namespace perfmap::loops {

/// Differences and sums of ticks, in both bases at once.
inline PypylogTick operator-(PypylogTick a, const PypylogTick& b) noexcept {
  return {a.hex - b.hex, a.dec - b.dec};
}
inline PypylogTick& operator+=(PypylogTick& a, const PypylogTick& b) noexcept {
  a.hex += b.hex;
  a.dec += b.dec;
  return a;
}

/// Times as they count: in order, and within the span that is asked for.
struct TickOrder {
  TickBase base = TickBase::automatic;
  std::optional<PypylogTick> from = {};
  std::optional<PypylogTick> to = {};

  /// As long as no letter has been met, decimal readings are in the order of the hexadecimal ones.
  std::uint64_t key(const PypylogTick& tick) const noexcept {
    return base == TickBase::hex ? tick.hex : tick.dec;
  }
  bool less(const PypylogTick& a, const PypylogTick& b) const noexcept { return key(a) < key(b); }
  bool covers(const PypylogTick& tick) const noexcept {
    return !(from && less(tick, *from)) && !(to && less(*to, tick));
  }
  PypylogTick clamped(const PypylogTick& tick) const noexcept {
    if (from && less(tick, *from)) return *from;
    return to && less(*to, tick) ? *to : tick;
  }
};

/// What a profile has to know of a section by its category.
enum class Meaning : std::uint8_t { nothing, enter, leave, tells };

/// A jit-profile section that is open.
struct LoopEvent {
  Meaning meaning = Meaning::nothing;  ///< nothing: there is none
  bool counts = false;                 ///< its time is in the span that is asked for
  PypylogTick tick = {};
};

/// What a thread is in the middle of.
struct ThreadClock {
  static constexpr std::size_t kMostDepth = 4096;

  std::uint32_t number = PypylogEvent::kNoThread;
  bool has_started = false;
  bool is_in_inner_bridge = false;  // of `loop`, and not counted for itself
  std::uint32_t loop = CompiledLoop::kNone;
  PypylogTick first = {};
  PypylogTick last = {};     // up to which sections are accounted for
  PypylogTick changed = {};  // up to which loops are
  PypylogTick outside = {};
  PypylogTick rest = {};
  LoopEvent event = {};
  std::vector<std::uint32_t> open = {};  // categories of sections, outermost first

  std::uint32_t innermost() const noexcept {
    return open.empty() ? PypylogEvent::kNoCategory : open.back();
  }
};

}  // namespace perfmap::loops
