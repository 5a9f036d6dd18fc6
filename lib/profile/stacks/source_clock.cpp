#include "stacks/source_clock.hpp"

#include <algorithm>
#include <ctime>

namespace perfmap {
namespace {

/// What was made of a map or of a log has no times: whatever is asked for, all of it is there.
bool has_times(const Timeline& timeline) {
  Diagnostics ignored(1);
  const auto first = Jitdump::Reader(timeline.dump()).next(ignored);
  return first && first->time != 0;
}

}  // namespace

std::uint64_t SourceClock::at(std::uint64_t time, const RecordedEvent& event,
                              std::span<const std::shared_ptr<JitSources>> sources) {
  const auto has_dump = std::find_if(sources.begin(), sources.end(), [](const auto& one) {
    return !one->resolver().timelines().empty();
  });
  if (has_dump == sources.end()) return time;
  const auto timelines = (*has_dump)->resolver().timelines();
  if (!timelines.front().dump().has_tsc_times()) {
    if (event.clock == CLOCK_MONOTONIC) return time;
    if (std::none_of(timelines.begin(), timelines.end(), has_times)) return time;
    return incomparable("its clock is not CLOCK_MONOTONIC: record with 'perf record -k mono'");
  }
  // perf's conversion makes times of its own clock.
  if (conversion_ && !event.clock) return conversion_->to_ticks(time);
  return incomparable("their times are ticks: record without -k");
}

std::uint64_t SourceClock::incomparable(const char* why) {
  if (!failure_) {
    failure_ = Error{Errc::unsupported,
                     std::string("jitdumps name code as it was at their end, as the recording's "
                                 "times are of another clock; ") +
                         why,
                     0,
                     {}};
  }
  return Timeline::kEnd;
}

}  // namespace perfmap
