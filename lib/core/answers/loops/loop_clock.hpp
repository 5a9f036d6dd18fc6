#pragma once

#include <span>
#include <string_view>
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
  ThreadClock* thread_of(const PypylogEvent& event);
  PypylogTick tick_of(ThreadClock& thread, const PypylogEvent& event);
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
  void take_name(ThreadClock& thread, std::string_view line, const Location& where);
  std::uint32_t loop_in(const PypylogEvent& event);
  void take_loop(ThreadClock& thread, std::uint32_t loop, const Location& where);
  void enter(ThreadClock& thread, std::uint32_t loop);
  void leave(ThreadClock& thread, std::uint32_t loop, const Location& where);
  void leave_unnamed(ThreadClock& thread, const Location& where);
  void settle(ThreadClock& thread, const PypylogTick& tick);
  Sum& time_of(std::uint32_t loop);
  bool is_ignored(const CompiledLoop& loop) const noexcept {
    return loop.is_inner && !count_inner_bridges_;
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
  std::vector<std::uint32_t> named_in_slots_;  // by PypylogEvent::inside_slot
  std::vector<Sum> times_;
  std::vector<CategorySum> categories_;  // by PypylogEvent::category
  std::vector<ThreadClock> threads_;
};

}  // namespace perfmap::loops
