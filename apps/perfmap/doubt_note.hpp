#pragma once

#include <array>
#include <perfmap/doubt.hpp>
#include <string>
#include <string_view>

#include "console.hpp"

namespace perfmap::app {

/// Answers of which some are doubtful.
struct DoubtCounts {
  std::uint64_t all = 0;
  std::uint64_t doubtful = 0;
  std::array<std::uint64_t, kDoubtCount> kinds = {};  ///< by kind, as doubt_at() counts

  void add(Doubts doubts) noexcept {
    ++all;
    doubtful += doubts.any() ? 1 : 0;
    for (unsigned i = 0; i < kDoubtCount; ++i) kinds[i] += doubts.has(doubt_at(i)) ? 1 : 0;
  }
};

/// "3 of 40 frames are doubtful: 2 scanned-frame, 1 guessed-owner (--verbose explains)"; with
/// --verbose a line for each kind explains it. Nothing where none is doubtful. `what` is their
/// plural, "frames".
void note_doubts(const DoubtCounts& counts, std::string_view what, const Console& console);

/// What stands after a doubtful answer in text: " (?)", or with --verbose " (? clamped-range)".
/// Empty where there are no doubts.
std::string doubt_mark(Doubts doubts, bool verbose);

}  // namespace perfmap::app
