#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/loop_profile.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What the rows of a table of loops are.
enum class LoopKey : std::uint8_t { loop, function, file };
/// "loop", "function", "file".
PERFMAP_API std::string_view to_string(LoopKey key) noexcept;
PERFMAP_API std::optional<LoopKey> parse_loop_key(std::string_view name) noexcept;

/// How many samples of a recording fell into the code of each loop, by its number in
/// CompiledLoops::all(), and of all samples. Borrowed.
struct SampledLoops {
  std::span<const std::uint64_t> by_loop = {};
  std::uint64_t total = 0;
};

/// A loop or bridge, or all those of a function or file. Nothing where the log does not say.
struct LoopRow {
  std::uint32_t loop = CompiledLoop::kNone;  ///< the only one, or the first of several
  std::uint64_t loops = 0;                   ///< how many they are
  /// Those of an inner bridge are its loop's, unless LoopProfile::counts_inner_bridges().
  std::optional<std::uint64_t> ticks = {};
  /// By events, or else by jit-backend-counts.
  std::optional<std::uint64_t> entered = {};
  std::optional<std::uint64_t> iterations = {};
  std::uint64_t samples = 0;
};

/// A guard out of which a bridge leads, and how often that was entered.
struct FailedGuard {
  std::uint32_t guard = 0;  ///< in CompiledLoop::guards
  std::optional<std::uint64_t> failures = {};
};

/// The loops of a log in the order in which one wants to see them: most time first; where the log
/// has no times, most samples; where nobody took samples, most iterations. Equals stay in the order
/// of the log. O(n log n) in the number of loops.
PERFMAP_API std::vector<LoopRow> loop_rows(const LoopProfile& profile, LoopKey key,
                                           const std::optional<SampledLoops>& samples = {});

/// The sum of some of these rows.
PERFMAP_API LoopRow sum_of_rows(std::span<const LoopRow> rows);

/// The time of a loop or bridge, as in LoopRow.
PERFMAP_API std::optional<std::uint64_t> ticks_of_loop(const LoopProfile& profile,
                                                       std::uint32_t loop);

/// How often a loop or bridge was entered; nothing where the log does not say.
PERFMAP_API std::optional<std::uint64_t> times_entered(const LoopProfile& profile,
                                                       std::uint32_t loop);

/// The guards of a loop that have bridges, most failures first. How often the others failed no log
/// tells: a failure is counted where it enters a bridge.
PERFMAP_API std::vector<FailedGuard> failed_guards(const LoopProfile& profile, std::uint32_t loop);

/// "Loop 1" of "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)": what is enough to name it, where the place
/// stands beside it. A view into the loop's name.
PERFMAP_API std::string_view short_name(const CompiledLoop& loop) noexcept;

/// The categories of a log by their numbers, most time first.
PERFMAP_API std::vector<std::uint32_t> ranked_categories(const LoopProfile& profile);

/// `part` / `whole` with that many decimals, cut off, as a whole number: scaled_ratio(2, 3, 2) is
/// 66. 0 where there is no whole; for what does not fit, the highest there is.
PERFMAP_API std::uint64_t scaled_ratio(std::uint64_t part, std::uint64_t whole,
                                       unsigned decimals) noexcept;

}  // namespace perfmap
