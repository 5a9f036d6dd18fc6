#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "perfmap/jit_sources.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/result.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// Tells the times of samples by the clock of jitdumps: CLOCK_MONOTONIC, or the processor's ticks.
class SourceClock {
 public:
  explicit SourceClock(const std::optional<TimeConversion>& conversion) : conversion_(conversion) {}

  /// For the first of the sources that has a dump. Where the clocks cannot be compared, the end:
  /// code is then named as it was at last.
  std::uint64_t at(std::uint64_t time, const RecordedEvent& event,
                   std::span<const std::shared_ptr<JitSources>> sources);
  /// That this happened, and what would have helped.
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  std::uint64_t incomparable(const char* why);

  std::optional<TimeConversion> conversion_;
  std::optional<Error> failure_;
};

}  // namespace perfmap
