#include "answers/lint/map_rules.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "index/columns.hpp"
#include "index/run.hpp"
#include "perfmap/range_check.hpp"
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

/// PM105: entries of which nothing is left once later lines have taken what they cover. One whose
/// very range was taken by another is the business of PM101 and PM102.
void check_shadowed(const Map& map, const Columns& sorted, Diagnostics& problems) {
  if (problems.ignores(rule::kShadowed)) return;
  const std::span<const Map> maps(&map, 1);
  Columns copy;
  copy.make_room(sorted.count());
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    const std::uint64_t end = end_of(sorted.begin[i], sorted.size[i], sorted.line[i], maps);
    copy.append(sorted.begin[i], end - sorted.begin[i], sorted.line[i]);
  }
  const Run run = make_run(std::move(copy), {Overlap::last, maps});
  std::vector<std::uint64_t> reached;
  reached.reserve(run.count());
  for (std::size_t i = 0; i < run.count(); ++i) reached.push_back(run.at(i, maps).owner.line);
  std::sort(reached.begin(), reached.end());
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    const bool taken_whole = i + 1 < sorted.count() && sorted.begin[i + 1] == sorted.begin[i] &&
                             sorted.size[i + 1] == sorted.size[i];
    if (taken_whole || std::binary_search(reached.begin(), reached.end(), sorted.line[i])) continue;
    problems.add(rule::kShadowed, line_location(map, sorted.line[i]),
                 "later lines cover all of it: no address has this name");
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

/// PM101-PM104, and PM114 for all of them together. Answers whether there were any.
bool check_conflicts(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  const std::span<const Map> maps(&map, 1);
  std::uint64_t reused = 0;
  bool any = false;
  for_each_conflict(maps, [&](const RangeFinding& finding) {
    any = true;
    if (finding.rule != &rule::kDuplicate) ++reused;
    if (!problems.count(*finding.rule)) return;
    problems.keep({finding.rule, line_location(map, finding.here.offset()),
                   message_of(finding, maps), map.line_number(finding.other.offset())});
  });
  constexpr std::uint64_t kFew = 100;
  if (facts.entries >= kFew && reused * 10 >= facts.entries) {
    problems.add(rule::kReuseRate, {0, 1, 1},
                 std::to_string(reused * 100 / facts.entries) +
                     " % of the entries lie over others: a jitdump would say which was when");
  }
  return any;
}

/// PM022: many different names that all end at the greatest length there is.
void check_cut_names(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  constexpr std::size_t kMany = 8;
  constexpr std::uint64_t kLong = 48;
  if (facts.longest_name < kLong || facts.longest.size() < kMany) return;
  const auto name_at = [&](const Location& at) {
    const auto entry = map.entry_at(at.offset);
    return entry ? entry->name : std::string_view();
  };
  const std::string_view first = name_at(facts.longest.front());
  std::size_t different = 0;
  for (const Location& at : facts.longest) different += name_at(at) != first ? 1 : 0;
  if (different + 1 < kMany) return;
  for (const Location& at : facts.longest) {
    problems.add(rule::kCutName, at,
                 "as long as the longest of all names, like many others: perhaps cut off");
  }
}

/// PM033: names on very many ranges, each once, at its first line.
void check_repeated_names(const Map& map, LineFacts& facts, Diagnostics& problems) {
  constexpr std::size_t kMany = 100;
  if (problems.ignores(rule::kManyRanges) || facts.name_hashes.size() <= kMany) return;
  std::uint64_t* const hashes = facts.name_hashes.data();
  const std::size_t count = facts.name_hashes.size();
  std::sort(hashes, hashes + count);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> frequent;  // hash, how often; by hash
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;
    while (end < count && hashes[end] == hashes[i]) ++end;
    if (end - i > kMany) frequent.emplace_back(hashes[i], end - i);
    i = end;
  }
  if (frequent.empty()) return;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    const std::uint64_t hash = std::hash<std::string_view>()(entry.name);
    const auto at =
        std::lower_bound(frequent.begin(), frequent.end(), std::pair(hash, std::uint64_t{0}));
    if (at == frequent.end() || at->first != hash || at->second == 0) return;
    problems.add(rule::kManyRanges, line_location(map, entry.offset),
                 "this name is on " + std::to_string(at->second) + " ranges");
    at->second = 0;
  });
}

}  // namespace

void check_ranges(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  Columns entries;
  Diagnostics ignored(1);
  read_columns(map, 0, 0, 1, entries, ignored);
  check_order(map, entries, problems);
  sort_columns(entries);
  check_decimal(entries, facts, problems);
  if (check_conflicts(map, facts, problems)) check_shadowed(map, entries, problems);
}

void check_names_together(const Map& map, LineFacts& facts, Diagnostics& problems) {
  check_cut_names(map, facts, problems);
  check_repeated_names(map, facts, problems);
}

}  // namespace perfmap::lint_rules
