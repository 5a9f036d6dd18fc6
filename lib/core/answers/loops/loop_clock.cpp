#include "answers/loops/loop_clock.hpp"

#include <algorithm>

#include "formats/pypy_lines.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::loops {
namespace {

constexpr std::size_t kMostThreads = 65536;

Location place_of(const PypylogEvent& event) noexcept { return {event.offset, event.line, 1}; }

}  // namespace

LoopClock::LoopClock(LoopProfile::Options options)
    : order_{options.base, options.from, options.to},
      count_inner_bridges_(options.count_inner_bridges),
      visit_(std::move(options.visit)),
      loops_(options.keep_code_bytes) {}

ThreadClock* LoopClock::find_thread(std::uint32_t number) noexcept {
  if (recent_ < threads_.size() && threads_[recent_].number == number) return &threads_[recent_];
  const auto found = std::find_if(threads_.begin(), threads_.end(), [&](const ThreadClock& thread) {
    return thread.number == number;
  });
  if (found == threads_.end()) return nullptr;
  recent_ = static_cast<std::size_t>(found - threads_.begin());
  return &*found;
}

ThreadClock* LoopClock::thread_of(const PypylogEvent& event) {
  if (ThreadClock* const known = find_thread(event.thread)) return known;
  if (threads_.size() == kMostThreads) {
    problems_.add(rule::kTooManySections, place_of(event), "a thread too many");
    return nullptr;
  }
  threads_.push_back({.number = event.thread});
  return &threads_.back();
}

/// The time of an event as it counts: never before the latest of its thread.
PypylogTick LoopClock::tick_of(ThreadClock& thread, const PypylogEvent& event) {
  PypylogTick tick = event.tick;
  if (event.has_letter && order_.base == TickBase::automatic) order_.base = TickBase::hex;
  if (event.has_letter && order_.base == TickBase::dec) {
    problems_.add(rule::kOddTick, place_of(event), "a time that is no decimal number");
    if (thread.has_started) return thread.last;
    tick = {};
  }
  tick = order_.clamped(tick);
  if (!thread.has_started) {
    thread.has_started = true;
    thread.first = thread.last = thread.changed = tick;
  }
  if (!order_.less(tick, thread.last)) return tick;
  problems_.add(rule::kTickRunsBack, place_of(event), "the time runs backwards");
  return thread.last;
}

void LoopClock::show(const ThreadClock& thread, const PypylogTick& tick) const {
  const std::uint64_t begin = order_.key(thread.last);
  visit_({thread.number, begin, order_.key(tick) - begin, thread.loop, thread.open});
}

/// The time since the thread's last section line is its innermost section's.
void LoopClock::account(ThreadClock& thread, const PypylogTick& tick) {
  if (visit_ && order_.base != TickBase::automatic && order_.less(thread.last, tick)) {
    show(thread, tick);
  }
  const std::uint32_t innermost = thread.innermost();
  (innermost == Categories::kNone ? thread.rest : category_times_[innermost].ticks) +=
      tick - thread.last;
  thread.last = tick;
}

void LoopClock::push(ThreadClock& thread, std::uint32_t category) {
  wanting_ -= wants(thread.innermost()) ? 1 : 0;
  thread.open.push_back(category);
  wanting_ += wants(category) ? 1 : 0;
}

void LoopClock::pop(ThreadClock& thread) {
  wanting_ -= wants(thread.innermost()) ? 1 : 0;
  thread.open.pop_back();
  wanting_ += wants(thread.innermost()) ? 1 : 0;
}

void LoopClock::open(ThreadClock& thread, const PypylogEvent& event) {
  const std::uint32_t category = categories_.number(event.text, [&](std::string_view name) {
    if (name == "jit-profile-enter") return Meaning::enter;
    if (name == "jit-profile-exit") return Meaning::leave;
    return loops_.wants(name) ? Meaning::tells : Meaning::nothing;
  });
  const PypylogTick tick = tick_of(thread, event);
  account(thread, tick);
  if (category == Categories::kNone || thread.open.size() == ThreadClock::kMostDepth) {
    problems_.add(rule::kTooManySections, place_of(event), "a section too many");
    return;
  }
  if (category_times_.size() <= category) category_times_.resize(category + std::size_t{1});
  const bool counts = order_.covers(event.tick);
  category_times_[category].entered += counts ? 1 : 0;
  push(thread, category);
  const Meaning meaning = categories_[category].meaning;
  if (meaning == Meaning::tells) {
    loops_.begin(event);
  } else if (meaning != Meaning::nothing) {
    has_events_ = true;
    if (thread.event.meaning != Meaning::nothing) leave_unnamed(thread, place_of(event));
    thread.event = {meaning, counts, tick};
  }
}

void LoopClock::close(ThreadClock& thread, const PypylogEvent& event) {
  const auto names_it = [&](std::uint32_t category) {
    return categories_[category].name == event.text;
  };
  const auto found = std::find_if(thread.open.rbegin(), thread.open.rend(), names_it);
  if (found == thread.open.rend()) {
    account(thread, tick_of(thread, event));
    problems_.add(rule::kUnopenedSection, place_of(event),
                  "a section ends that did not begin: " + std::string(event.text));
    return;
  }
  const Meaning meaning = categories_[*found].meaning;
  if (thread.event.meaning != Meaning::nothing && thread.event.meaning == meaning) {
    leave_unnamed(thread, place_of(event));
  }
  account(thread, tick_of(thread, event));
  while (!names_it(thread.innermost())) {
    problems_.add(rule::kUnendedSection, place_of(event),
                  "a section does not end: " + categories_[thread.innermost()].name);
    pop(thread);
  }
  pop(thread);
  if (meaning == Meaning::tells) loops_.end(event);
}

void LoopClock::take(const PypylogEvent& event) {
  if (event.kind == PypylogEvent::Kind::text) {
    take_text(event);
    return;
  }
  ThreadClock* const thread = thread_of(event);
  if (thread == nullptr) return;
  (event.kind == PypylogEvent::Kind::open) ? open(*thread, event) : close(*thread, event);
}

/// Lines in jit-profile sections name loops; others may tell of them.
void LoopClock::take_text(const PypylogEvent& event) {
  Location where = place_of(event);
  const bool has_thread = event.thread != PypylogEvent::kNoThread;
  std::uint32_t number = event.thread;
  std::string_view rest = event.text;
  while (!rest.empty()) {
    ThreadClock* const thread = find_thread(number);
    if (!has_thread && (thread == nullptr || thread->event.meaning == Meaning::nothing)) break;
    const std::size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (thread != nullptr && thread->event.meaning != Meaning::nothing) {
      take_name(*thread, plain_pypylog_line(rest.substr(0, size), has_thread), where);
    }
    where.offset += size;
    ++where.line;
    rest.remove_prefix(size);
    if (has_thread) number = pypylog_thread(rest);
  }
  loops_.take(event, problems_);
}

void LoopClock::take_name(ThreadClock& thread, std::string_view line, const Location& where) {
  const std::string_view name = event_name(line);
  if (name.empty()) return;
  const std::uint32_t loop = loops_.find_or_add(name);
  settle(thread, thread.event.tick);
  (thread.event.meaning == Meaning::enter) ? enter(thread, loop) : leave(thread, loop, where);
  thread.event = {};
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
    problems_.add(rule::kOtherLoop, where, "a loop is left that was not entered: " + left.name);
  }
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
}

void LoopClock::leave_unnamed(ThreadClock& thread, const Location& where) {
  problems_.add(rule::kUnnamedLoop, where, "no loop is named");
  settle(thread, thread.event.tick);
  thread.loop = CompiledLoop::kNone;
  thread.is_in_inner_bridge = false;
  thread.event = {};
}

void LoopClock::finish() {
  for (ThreadClock& thread : threads_) {
    if (thread.event.meaning != Meaning::nothing) leave_unnamed(thread, {});
    settle(thread, thread.last);
    for (std::size_t i = 0; i < thread.open.size(); ++i) {
      problems_.add(rule::kUnendedSection, {},
                    "the log ends in a section: " + categories_[thread.open[i]].name);
    }
  }
  if (order_.base != TickBase::automatic) return;
  order_.base = threads_.empty() ? TickBase::hex : TickBase::dec;
}

}  // namespace perfmap::loops
