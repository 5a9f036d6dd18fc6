#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/loops/thread_clock.hpp"
#include "perfmap/loop_profile.hpp"

namespace perfmap::loops {

/// Sums of a loop or a category, in both bases.
struct Sum {
  PypylogTick ticks = {};
  std::uint64_t entered = 0;
};

struct CategorySum : Sum {
  std::string name = {};
  Meaning meaning = Meaning::nothing;
};

inline Location place_of(const PypylogEvent& event) noexcept {
  return {event.offset, event.line, 1};
}

/// Of the line that closes a whole section.
inline Location end_of(const PypylogEvent& event) noexcept {
  const bool has_line = !event.inside.empty();
  return {event.inside_offset + event.inside.size(), event.line + (has_line ? 2 : 1), 1};
}

/// A loop that an event names, and what that means for its time.
struct NamedLoop {
  std::uint64_t version = 0;  // of what is known of loops; 0: nothing
  std::uint32_t loop = CompiledLoop::kNone;
  std::uint32_t counted = CompiledLoop::kNone;  // whose time it is
  bool is_ignored = false;                      // an inner bridge, whose time is its loop's
};

/// Accounts for the time between a log's section lines.
class LoopClock {
 public:
  explicit LoopClock(LoopProfile::Options options);

  bool wants_text() const noexcept { return wanting_ != 0; }
  void take(const PypylogEvent& event);
  void finish();

  const TickOrder& order() const noexcept { return order_; }
  bool has_events() const noexcept { return has_events_; }
  bool counts_inner_bridges() const noexcept { return count_inner_bridges_; }
  const CompiledLoops& loops() const noexcept { return loops_; }
  std::span<const CategorySum> categories() const noexcept { return categories_; }
  std::span<const Sum> times() const noexcept { return times_; }
  std::span<const ThreadClock> threads() const noexcept { return threads_; }
  const Diagnostics& problems() const noexcept { return problems_; }

 private:
  ThreadClock* find_thread(std::uint32_t number) noexcept;
  ThreadClock* thread_of(const PypylogEvent& event) {
    if (recent_ < threads_.size() && threads_[recent_].number == event.thread) {
      return &threads_[recent_];
    }
    return find_or_add_thread(event);
  }
  ThreadClock* find_or_add_thread(const PypylogEvent& event);
  /// The time of an event as it counts: never before the latest of its thread.
  PypylogTick tick_of(ThreadClock& thread, const PypylogEvent& event) {
    return is_plain(thread, event.tick)
               ? event.tick
               : odd_tick_of(thread, event.tick, event.has_letter, place_of(event));
  }
  PypylogTick closed_of(ThreadClock& thread, const PypylogEvent& event) {
    return is_plain(thread, event.closed)
               ? event.closed
               : odd_tick_of(thread, event.closed, event.closed_has_letter, end_of(event));
  }
  bool is_plain(const ThreadClock& thread, const PypylogTick& tick) const noexcept {
    return order_.base == TickBase::hex && !order_.from && !order_.to && thread.has_started &&
           tick.hex >= thread.last.hex;
  }
  PypylogTick odd_tick_of(ThreadClock& thread, PypylogTick tick, bool has_letter,
                          const Location& where);
  void account(ThreadClock& thread, const PypylogTick& tick);
  void report(const Rule& rule, const Location& where, std::string_view what,
              std::string_view name);
  void show(const ThreadClock& thread, const PypylogTick& tick) const;
  void open(ThreadClock& thread, const PypylogEvent& event);
  void close(ThreadClock& thread, const PypylogEvent& event);
  CategorySum& category_of(const PypylogEvent& event);
  void take_whole(ThreadClock& thread, const PypylogEvent& event);
  void take_parts(ThreadClock& thread, const PypylogEvent& event);
  void push(ThreadClock& thread, std::uint32_t category);
  void pop(ThreadClock& thread);
  void begin_event(ThreadClock& thread, const LoopEvent& event);
  void end_event(ThreadClock& thread);
  bool is_naming(const ThreadClock& thread) const noexcept;
  void take_text(const PypylogEvent& event);
  void take_name(ThreadClock& thread, const PypylogEvent& line);
  NamedLoop named(std::uint32_t loop) const noexcept;
  const NamedLoop& loop_in(const PypylogEvent& event);
  void take_loop(ThreadClock& thread, const LoopEvent& change, const NamedLoop& named,
                 const PypylogEvent& at);
  void leave_unnamed(ThreadClock& thread, const LoopEvent& change, const Location& where);
  void leave_loop(ThreadClock& thread, const LoopEvent& change);
  Sum& time_of(std::uint32_t loop) {
    if (times_.size() <= loop) times_.resize(loop + std::size_t{1});
    return times_[loop];
  }
  /// Since the last change the thread was in its present loop, or in none.
  void settle(ThreadClock& thread, const PypylogTick& tick) {
    (thread.loop == CompiledLoop::kNone ? thread.outside : time_of(thread.loop).ticks) +=
        tick - thread.changed;
    thread.changed = tick;
  }
  bool wants(std::uint32_t category) const noexcept {
    return category != PypylogEvent::kNoCategory &&
           categories_[category].meaning != Meaning::nothing;
  }

  TickOrder order_;
  bool count_inner_bridges_;
  std::function<void(const LoopSpan&)> visit_;
  bool has_events_ = false;
  std::size_t unnamed_ = 0;  // threads in a jit-profile section that has named no loop yet
  std::size_t wanting_ = 0;  // threads whose innermost section's text is of interest
  std::size_t recent_ = 0;   // the thread of the last event
  Diagnostics problems_{8};
  CompiledLoops loops_;
  std::vector<NamedLoop> named_in_slots_;  // by PypylogEvent::inside_slot
  std::uint64_t version_ = 1;
  std::vector<Sum> times_;
  std::vector<CategorySum> categories_;  // by PypylogEvent::category
  std::vector<ThreadClock> threads_;
  std::unordered_map<std::uint32_t, std::size_t> thread_numbers_;  // positions in threads_
};

}  // namespace perfmap::loops
