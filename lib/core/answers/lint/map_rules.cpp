#include "answers/lint/map_rules.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "answers/lint/conflicts.hpp"
#include "map/segments.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

Location line_location(const Map& map, std::uint64_t offset) {
  return {offset, map.line_number(offset), 1};
}

/// PM113: the first line that starts below the one before it.
void check_order(const Map& map, const Columns& entries, Diagnostics& problems) {
  for (std::size_t i = 1; i < entries.count(); ++i) {
    if (entries.begin[i] >= entries.begin[i - 1]) continue;
    problems.add(rule::kNotSorted, line_location(map, entries.line[i]),
                 "starts below the entry before it; readers have to sort");
    return;
  }
}

/// The lines that own some address, by their offsets.
class OwningLines {
 public:
  OwningLines(const SegmentTable& run, const Map& map)
      : owns_(map.text().size() / kShortestLine + 1) {
    for (std::size_t i = 0; i < run.count(); ++i) {
      owns_[run.at(i, std::span(&map, 1)).owner.offset() / kShortestLine] = true;
    }
  }
  bool contains(std::uint64_t offset) const { return owns_[offset / kShortestLine]; }

 private:
  // No entry is shorter than "0 0 x" and its newline, so no two share a bit.
  static constexpr std::size_t kShortestLine = 6;
  std::vector<bool> owns_;
};

Columns copy_of(const Columns& columns) {
  Columns copy;
  copy.make_room(columns.count());
  for (std::size_t i = 0; i < columns.count(); ++i) {
    copy.begin.append_unchecked(columns.begin[i]);
    copy.size.append_unchecked(columns.size[i]);
    copy.line.append_unchecked(columns.line[i]);
  }
  return copy;
}

/// PM105: entries of which nothing is left once later lines have taken what they cover. One whose
/// very range was taken by another is the business of PM101 and PM102.
void check_shadowed(const Map& map, const Columns& sorted, Diagnostics& problems) {
  if (problems.ignores(rule::kShadowed)) return;
  const std::span<const Map> maps(&map, 1);
  const SegmentTable run = make_run(copy_of(sorted), {Overlap::last, maps});
  const OwningLines owning(run, map);
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    const bool taken_whole = i + 1 < sorted.count() && sorted.begin[i + 1] == sorted.begin[i] &&
                             sorted.size[i + 1] == sorted.size[i];
    if (taken_whole || owning.contains(sorted.line[i])) continue;
    if (!problems.count(rule::kShadowed)) continue;
    const std::uint64_t taker = map.line_number(run.find(sorted.begin[i], maps));
    problems.keep({&rule::kShadowed, line_location(map, sorted.line[i]),
                   "later lines, such as line " + std::to_string(taker) +
                       ", cover all of it: no address has this name",
                   taker});
  }
}

/// A hexadecimal number that was meant as a decimal one.
std::uint64_t read_as_decimal(std::uint64_t value) noexcept {
  std::uint64_t decimal = 0;
  for (int shift = 60; shift >= 0; shift -= 4) decimal = decimal * 10 + (value >> shift & 15);
  return decimal;
}

/// PM110: no size has a letter, and most neighbours overlap unless sizes are read as decimal.
void check_decimal(const Columns& sorted, const LineFacts& facts, Diagnostics& problems) {
  constexpr std::size_t kFew = 16;
  if (!facts.all_sizes_decimal || sorted.count() < kFew) return;
  std::size_t mended = 0;
  for (std::size_t i = 0; i + 1 < sorted.count(); ++i) {
    const std::uint64_t gap = sorted.begin[i + 1] - sorted.begin[i];
    if (sorted.size[i] > gap && read_as_decimal(sorted.size[i]) <= gap && gap != 0) ++mended;
  }
  if (mended * 2 < sorted.count()) return;
  problems.add(rule::kDecimalSizes, {0, 1, 1},
               "sizes look decimal: read so, " + std::to_string(mended) + " overlaps vanish");
}

/// PM101-PM104, and PM114 for all of them together. Answers whether some entries cover others,
/// beyond mere repetition.
bool check_conflicts(const Map& map, const Columns& sorted, Diagnostics& problems) {
  const std::span<const Map> maps(&map, 1);
  std::uint64_t reused = 0;
  for_each_conflict(sorted, maps, [&](const RangeFinding& finding) {
    if (finding.rule != &rule::kDuplicate) ++reused;
    if (!problems.count(*finding.rule)) return;
    problems.keep({finding.rule, line_location(map, finding.here.offset()),
                   message_of(finding, maps), map.line_number(finding.other.offset())});
  });
  constexpr std::uint64_t kFew = 100;
  if (sorted.count() >= kFew && reused * 10 >= sorted.count()) {
    problems.add(rule::kReuseRate, {0, 1, 1},
                 std::to_string(reused * 100 / sorted.count()) +
                     " % of the entries lie over others: a jitdump would say which was when");
  }
  return reused != 0;
}

}  // namespace

void check_ranges(const Map& map, LineFacts& facts, Diagnostics& problems) {
  check_order(map, facts.entries, problems);
  sort_columns(facts.entries);
  check_decimal(facts.entries, facts, problems);
  if (check_conflicts(map, facts.entries, problems)) check_shadowed(map, facts.entries, problems);
}

}  // namespace perfmap::lint_rules
