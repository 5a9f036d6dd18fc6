#include "answers/loops/loop_clock.hpp"

#include <algorithm>

#include "perfmap/rules.hpp"

namespace perfmap::loops {
namespace {

constexpr std::size_t kMostThreads = 65536;

}  // namespace

LoopClock::LoopClock(LoopProfile::Options options)
    : order_{options.base, options.from, options.to},
      count_inner_bridges_(options.count_inner_bridges),
      visit_(std::move(options.visit)),
      loops_(options.keep_code_bytes) {}

ThreadClock* LoopClock::find_thread(std::uint32_t number) noexcept {
  if (recent_ < threads_.size() && threads_[recent_].number == number) return &threads_[recent_];
  const auto found = thread_numbers_.find(number);
  if (found == thread_numbers_.end()) return nullptr;
  recent_ = found->second;
  return &threads_[recent_];
}

ThreadClock* LoopClock::find_or_add_thread(const PypylogEvent& event) {
  if (ThreadClock* const known = find_thread(event.thread)) return known;
  if (threads_.size() == kMostThreads) {
    problems_.add(rule::kTooManySections, place_of(event), "a thread too many");
    return nullptr;
  }
  thread_numbers_.emplace(event.thread, threads_.size());
  threads_.push_back({.number = event.thread});
  return &threads_.back();
}

PypylogTick LoopClock::odd_tick_of(ThreadClock& thread, PypylogTick tick, bool has_letter,
                                   const Location& where) {
  if (has_letter && order_.base == TickBase::automatic) order_.base = TickBase::hex;
  if (has_letter && order_.base == TickBase::dec) {
    problems_.add(rule::kOddTick, where, "a time that is no decimal number");
    if (thread.has_started) return thread.last;
    tick = {};
  }
  tick = order_.clamped(tick);
  if (!thread.has_started) {
    thread.has_started = true;
    thread.first = thread.last = thread.changed = tick;
  }
  if (!order_.less(tick, thread.last)) return tick;
  problems_.add(rule::kTickRunsBack, where, "the time runs backwards");
  return thread.last;
}

/// Makes a message only of what will be kept.
void LoopClock::report(const Rule& rule, const Location& where, std::string_view what,
                       std::string_view name) {
  if (!problems_.count(rule)) return;
  problems_.keep({&rule, where, std::string(what) + std::string(name)});
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
  (thread.open.empty() ? thread.rest : categories_[thread.open.back()].ticks) += tick - thread.last;
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

/// The reader's numbers count up.
CategorySum& LoopClock::category_of(const PypylogEvent& event) {
  if (event.category < categories_.size()) return categories_[event.category];
  CategorySum& category = categories_.emplace_back();
  category.name = event.text;
  if (loops_.wants(event.text)) category.meaning = Meaning::tells;
  if (event.text == "jit-profile-enter") category.meaning = Meaning::enter;
  if (event.text == "jit-profile-exit") category.meaning = Meaning::leave;
  return category;
}

void LoopClock::open(ThreadClock& thread, const PypylogEvent& event) {
  const PypylogTick tick = tick_of(thread, event);
  account(thread, tick);
  if (event.category == PypylogEvent::kNoCategory ||
      thread.open.size() == ThreadClock::kMostDepth) {
    problems_.add(rule::kTooManySections, place_of(event), "a section too many");
    return;
  }
  CategorySum& category = category_of(event);
  const bool counts = order_.covers(event.tick);
  category.entered += counts ? 1 : 0;
  push(thread, event.category);
  if (category.meaning == Meaning::tells) {
    loops_.begin(event);
    ++version_;
  } else if (category.meaning != Meaning::nothing) {
    has_events_ = true;
    if (thread.event.meaning != Meaning::nothing)
      leave_unnamed(thread, thread.event, place_of(event));
    begin_event(thread, {category.meaning, counts, tick});
  }
}

void LoopClock::close(ThreadClock& thread, const PypylogEvent& event) {
  const auto found = std::find(thread.open.rbegin(), thread.open.rend(), event.category);
  if (found == thread.open.rend()) {
    account(thread, tick_of(thread, event));
    if (event.category != PypylogEvent::kNoCategory) category_of(event);
    report(rule::kUnopenedSection, place_of(event),
           "a section ends that did not begin: ", event.text);
    return;
  }
  const Meaning meaning = categories_[event.category].meaning;
  if (thread.event.meaning != Meaning::nothing && thread.event.meaning == meaning) {
    leave_unnamed(thread, thread.event, place_of(event));
  }
  account(thread, tick_of(thread, event));
  for (; thread.open.back() != event.category; pop(thread)) {
    report(rule::kUnendedSection, place_of(event),
           "a section does not end: ", categories_[thread.open.back()].name);
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
  if (event.kind == PypylogEvent::Kind::open) {
    open(*thread, event);
  } else if (event.kind == PypylogEvent::Kind::close) {
    close(*thread, event);
  } else {
    take_whole(*thread, event);
  }
}

/// A section that is opened and closed at once. Nobody has to be shown what was open meanwhile.
void LoopClock::take_whole(ThreadClock& thread, const PypylogEvent& event) {
  if (event.is_inside_new && !named_in_slots_.empty()) named_in_slots_[event.inside_slot] = {};
  const bool is_new = event.category >= categories_.size();  // or there are too many
  const bool is_simple = !visit_ && !is_new && thread.open.size() < ThreadClock::kMostDepth &&
                         thread.event.meaning == Meaning::nothing &&
                         categories_[event.category].meaning != Meaning::tells;
  if (!is_simple) {
    take_parts(thread, event);
    return;
  }
  CategorySum& category = categories_[event.category];
  const PypylogTick opened = tick_of(thread, event);
  account(thread, opened);
  const bool counts = order_.covers(event.tick);
  category.entered += counts ? 1 : 0;
  if (category.meaning != Meaning::nothing) {
    has_events_ = true;
    const LoopEvent change{category.meaning, counts, opened};
    const NamedLoop& named = loop_in(event);
    if (named.loop != CompiledLoop::kNone) {
      take_loop(thread, change, named, event);
    } else {
      leave_unnamed(thread, change, place_of(event));
    }
  }
  const PypylogTick closed = closed_of(thread, event);
  category.ticks += closed - opened;
  thread.last = closed;
}

void LoopClock::take_parts(ThreadClock& thread, const PypylogEvent& event) {
  PypylogEvent part = event;
  part.kind = PypylogEvent::Kind::open;
  open(thread, part);
  if (wants_text() && !event.inside.empty()) {
    part.kind = PypylogEvent::Kind::text;
    part.text = event.inside;
    part.offset = event.inside_offset;
    part.line = event.line + 1;
    take_text(part);
  }
  part = event;
  part.kind = PypylogEvent::Kind::close;
  part.offset = end_of(event).offset;
  part.line = end_of(event).line;
  part.tick = event.closed;
  part.has_letter = event.closed_has_letter;
  close(thread, part);
}

void LoopClock::finish() {
  for (ThreadClock& thread : threads_) {
    if (thread.event.meaning != Meaning::nothing) leave_loop(thread, thread.event);
    settle(thread, thread.last);
    for (std::size_t i = 0; i < thread.open.size(); ++i) {
      report(rule::kUnendedSection, {},
             "the log ends in a section: ", categories_[thread.open[i]].name);
    }
  }
  if (order_.base != TickBase::automatic) return;
  order_.base = threads_.empty() ? TickBase::hex : TickBase::dec;
}

}  // namespace perfmap::loops
