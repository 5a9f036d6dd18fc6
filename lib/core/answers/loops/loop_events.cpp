// What jit-profile sections say: loops that are entered and left.

#include <algorithm>

#include "answers/loops/loop_clock.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::loops {

void LoopClock::begin_event(ThreadClock& thread, const LoopEvent& event) {
  thread.event = event;
  ++unnamed_;
}

void LoopClock::end_event(ThreadClock& thread) {
  thread.event = {};
  --unnamed_;
}

/// Whether text is in a jit-profile section, and in none inside it.
bool LoopClock::is_naming(const ThreadClock& thread) const noexcept {
  return thread.event.meaning != Meaning::nothing && !thread.open.empty() &&
         categories_[thread.open.back()].meaning == thread.event.meaning;
}

/// Lines in jit-profile sections name loops; others may tell of them.
void LoopClock::take_text(const PypylogEvent& event) {
  Location where = place_of(event);
  std::string_view rest = unnamed_ == 0 ? std::string_view() : event.text;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, size);
    ThreadClock* const thread = find_thread(pypylog_thread(line));
    if (thread != nullptr && is_naming(*thread)) {
      take_name(*thread, line, where);
    }
    where.offset += size;
    ++where.line;
    rest.remove_prefix(size);
  }
  loops_.take(event, problems_);
}

void LoopClock::take_name(ThreadClock& thread, std::string_view line, const Location& where) {
  take_loop(thread, loops_.named_by(line), where);
}

/// The loop that a whole section names; those of lines that came lately are known.
std::uint32_t LoopClock::loop_in(const PypylogEvent& event) {
  if (event.inside_slot == PypylogEvent::kNoSlot) return loops_.named_by(event.inside);
  if (named_in_slots_.empty()) named_in_slots_.assign(PypylogEvent::kSlots, CompiledLoop::kNone);
  std::uint32_t& known = named_in_slots_[event.inside_slot];
  known = known == CompiledLoop::kNone ? loops_.named_by(event.inside) : loops_.latest(known);
  return known;
}

void LoopClock::take_loop(ThreadClock& thread, std::uint32_t loop, const Location& where) {
  if (loop == CompiledLoop::kNone) return;
  settle(thread, thread.event.tick);
  (thread.event.meaning == Meaning::enter) ? enter(thread, loop) : leave(thread, loop, where);
  end_event(thread);
}

Sum& LoopClock::time_of(std::uint32_t loop) {
  if (times_.size() <= loop) times_.resize(loop + std::size_t{1});
  return times_[loop];
}

/// Since the last change the thread was in its present loop, or in none.
void LoopClock::settle(ThreadClock& thread, const PypylogTick& tick) {
  (thread.loop == CompiledLoop::kNone ? thread.outside : time_of(thread.loop).ticks) +=
      tick - thread.changed;
  thread.changed = tick;
}

void LoopClock::enter(ThreadClock& thread, std::uint32_t loop) {
  const CompiledLoop& entered = loops_.all()[loop];
  const bool is_ignored_bridge = is_ignored(entered);
  const std::uint32_t counted = is_ignored_bridge ? entered.loop : loop;
  // The jump back from an inner bridge is no entry of its loop.
  const bool returns = thread.is_in_inner_bridge && thread.loop == loop;
  if (thread.event.counts && !returns) ++time_of(loop).entered;
  thread.loop = counted;
  thread.is_in_inner_bridge = is_ignored_bridge;
}

void LoopClock::leave(ThreadClock& thread, std::uint32_t loop, const Location& where) {
  const CompiledLoop& left = loops_.all()[loop];
  const std::uint32_t expected = is_ignored(left) ? left.loop : loop;
  if (thread.loop != expected) {
    report(rule::kOtherLoop, where, "a loop is left that was not entered: ", left.name);
  }
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
}

void LoopClock::leave_unnamed(ThreadClock& thread, const Location& where) {
  problems_.add(rule::kUnnamedLoop, where, "no loop is named");
  settle(thread, thread.event.tick);
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
  end_event(thread);
}

}  // namespace perfmap::loops
