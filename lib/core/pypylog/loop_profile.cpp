// What jit-profile sections say: loops that are entered and left.

#include "perfmap/loop_profile.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {

namespace loops {

namespace {

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
  static constexpr std::size_t kMaxDepth = 4096;

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

}  // namespace

namespace {

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

}  // namespace

namespace {

constexpr std::size_t kMaxThreads = 65536;

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
  if (threads_.size() == kMaxThreads) {
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
  if (event.category == PypylogEvent::kNoCategory || thread.open.size() == ThreadClock::kMaxDepth) {
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
  const bool is_simple = !visit_ && !is_new && thread.open.size() < ThreadClock::kMaxDepth &&
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

}  // namespace

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

}  // namespace loops

using loops::LoopClock;

struct LoopProfile::State {
  explicit State(Options options) : clock(std::move(options)) {}

  LoopClock clock;
  PypylogReader reader;
  std::vector<Times> times;
  std::vector<Category> categories;
  std::vector<Thread> threads;
  std::uint64_t ticks = 0, outside = 0, rest = 0;

  void settle();
};

/// The results, in the base that the log turned out to have.
void LoopProfile::State::settle() {
  const auto value = [&](const PypylogTick& tick) { return clock.order().key(tick); };
  times.resize(clock.loops().all().size());
  for (std::size_t i = 0; i < clock.times().size(); ++i) {
    times[i] = {value(clock.times()[i].ticks), clock.times()[i].entered};
  }
  for (const loops::CategorySum& category : clock.categories()) {
    categories.push_back({category.name, value(category.ticks), category.entered});
  }
  for (const loops::ThreadClock& thread : clock.threads()) {
    threads.push_back({thread.number, value(thread.first), value(thread.last),
                       value(thread.outside), value(thread.rest)});
    ticks += threads.back().ticks();
    outside += threads.back().outside;
    rest += threads.back().rest;
  }
}

LoopProfile::LoopProfile(Options options) : state_(std::make_unique<State>(std::move(options))) {}
LoopProfile::LoopProfile(LoopProfile&&) noexcept = default;
LoopProfile& LoopProfile::operator=(LoopProfile&&) noexcept = default;
LoopProfile::~LoopProfile() = default;

void LoopProfile::add(std::string_view lines) {
  if (!lines.empty() && lines.back() != '\n' && lines.back() != '}' &&
      !plain_pypylog_line(lines).ends_with('}')) {
    lines = lines.substr(0, lines.rfind('\n') + 1);  // not finished yet
  }
  State& state = *state_;
  state.reader.feed(lines);
  while (const PypylogEvent* const event = state.reader.next(state.clock.wants_text())) {
    state.clock.take(*event);
  }
}

void LoopProfile::finish() {
  state_->clock.finish();
  state_->settle();
}

bool LoopProfile::counts_inner_bridges() const noexcept {
  return state_->clock.counts_inner_bridges();
}
TickBase LoopProfile::base() const noexcept { return state_->clock.order().base; }
bool LoopProfile::has_events() const noexcept { return state_->clock.has_events(); }
const CompiledLoops& LoopProfile::loops() const noexcept { return state_->clock.loops(); }
std::span<const LoopProfile::Times> LoopProfile::times() const noexcept { return state_->times; }
std::span<const LoopProfile::Category> LoopProfile::categories() const noexcept {
  return state_->categories;
}
std::span<const LoopProfile::Thread> LoopProfile::threads() const noexcept {
  return state_->threads;
}
std::uint64_t LoopProfile::ticks() const noexcept { return state_->ticks; }
std::uint64_t LoopProfile::outside() const noexcept { return state_->outside; }
std::uint64_t LoopProfile::rest() const noexcept { return state_->rest; }
const Diagnostics& LoopProfile::problems() const noexcept { return state_->clock.problems(); }

}  // namespace perfmap
