#pragma once

#include <array>
#include <cstdint>
#include <perfmap/doubt.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// Counts doubtful answers for the line that a command ends with.
class DoubtCount {
 public:
  void add(Doubts doubts) noexcept;
  /// "3 of 40 answers are doubtful: 2 clamped-range, 1 reused-address (--verbose explains)"; with
  /// --verbose, a line for each kind explains it. Nothing where no answer was doubtful. `what` is
  /// what the answers are called.
  void note(const Console& console, const std::string& what = "answer") const;

 private:
  std::uint64_t all_ = 0;
  std::uint64_t doubtful_ = 0;
  std::array<std::uint64_t, kDoubtCount> kinds_{};
};

/// What stands behind a doubtful answer in text: " (?)", or with --verbose " (? clamped-range)".
/// Empty where there are no doubts.
std::string doubt_mark(Doubts doubts, bool verbose);

}  // namespace perfmap::app
