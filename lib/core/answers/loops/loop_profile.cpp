#include "perfmap/loop_profile.hpp"

#include "answers/loops/loop_clock.hpp"

namespace perfmap {

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
