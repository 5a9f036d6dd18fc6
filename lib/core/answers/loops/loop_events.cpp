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
  PypylogEvent line = event;
  std::string_view rest = unnamed_ == 0 ? std::string_view() : event.text;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
    line.text = rest.substr(0, size);
    ThreadClock* const thread = find_thread(pypylog_thread(line.text));
    if (thread != nullptr && is_naming(*thread)) take_name(*thread, line);
    line.offset += size;
    ++line.line;
    rest.remove_prefix(size);
  }
  if (loops_.take(event, problems_)) ++version_;
}

void LoopClock::take_name(ThreadClock& thread, const PypylogEvent& line) {
  const std::uint32_t loop = loops_.named_by(line.text);
  if (loop == CompiledLoop::kNone) return;
  take_loop(thread, thread.event, named(loop), line);
  end_event(thread);
}

NamedLoop LoopClock::named(std::uint32_t loop) const noexcept {
  const CompiledLoop& named = loops_.all()[loop];
  const bool is_ignored = named.is_inner && !count_inner_bridges_;
  return {version_, loop, is_ignored ? named.loop : loop, is_ignored};
}

/// The loop that a whole section names. Those of lines that came lately are known, as long as
/// nothing else is compiled.
const NamedLoop& LoopClock::loop_in(const PypylogEvent& event) {
  if (named_in_slots_.empty()) named_in_slots_.resize(PypylogEvent::kSlots + std::size_t{1});
  NamedLoop& known = named_in_slots_[std::min(event.inside_slot, PypylogEvent::kSlots)];
  const bool came_lately = event.inside_slot != PypylogEvent::kNoSlot && !event.is_inside_new &&
                           known.loop != CompiledLoop::kNone;
  if (came_lately && known.version == version_) return known;
  const std::uint32_t loop =
      came_lately ? loops_.latest(known.loop) : loops_.named_by(event.inside);
  known = loop == CompiledLoop::kNone ? NamedLoop{} : named(loop);
  return known;
}

void LoopClock::take_loop(ThreadClock& thread, const LoopEvent& change, const NamedLoop& named,
                          const PypylogEvent& at) {
  settle(thread, change.tick);
  if (change.meaning == Meaning::enter) {
    // The jump back from an inner bridge is no entry of its loop.
    const bool returns = thread.is_in_inner_bridge && thread.loop == named.loop;
    if (change.counts && !returns) ++time_of(named.loop).entered;
    thread.loop = named.counted;
    thread.is_in_inner_bridge = named.is_ignored;
    return;
  }
  if (thread.loop != named.counted) {
    report(rule::kOtherLoop, place_of(at),
           "a loop is left that was not entered: ", loops_.all()[named.loop].name);
  }
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
}

void LoopClock::leave_unnamed(ThreadClock& thread, const LoopEvent& change, const Location& where) {
  problems_.add(rule::kUnnamedLoop, where, "no loop is named");
  leave_loop(thread, change);
}

/// Nobody knows for what.
void LoopClock::leave_loop(ThreadClock& thread, const LoopEvent& change) {
  settle(thread, change.tick);
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
  if (thread.event.meaning != Meaning::nothing) end_event(thread);
}

}  // namespace perfmap::loops
