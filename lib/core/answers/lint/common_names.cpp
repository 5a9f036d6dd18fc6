#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "answers/lint/map_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

/// Reports about the byte at `position` of an entry's name. The line is counted out only where the
/// finding is kept.
void say(const Map& map, const Entry& entry, std::size_t position, const Rule& rule,
         const std::string& message, Diagnostics& problems) {
  if (!problems.count(rule)) return;
  const auto place = static_cast<std::uint64_t>(entry.name.data() - map.text().data()) + position;
  problems.keep(
      {&rule, {place, map.line_number(entry.offset), place - entry.offset + 1}, message, 0});
}

constexpr std::size_t kManyCut = 8;

/// Whether lengths pile up at the longest one: so many names, more than of the next eight lengths
/// below together, while others are shorter. Names that are all of one length were made so.
bool lengths_pile_up(const LineFacts& facts, std::size_t longest) noexcept {
  constexpr std::size_t kShortestLimit = 48;
  if (longest < kShortestLimit || longest > LineFacts::kMaxCounted) return false;
  const auto* const of_length = facts.names_of_length.data();
  const std::uint64_t below =
      std::accumulate(of_length + longest - 8, of_length + longest, std::uint64_t{0});
  return of_length[longest] >= kManyCut && of_length[longest] > below &&
         of_length[longest] < facts.entries.count();
}

/// PM022: many different names that all end at the greatest length there is.
void check_cut_names(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  std::size_t longest = LineFacts::kMaxCounted + 1;
  while (longest > 0 && facts.names_of_length[longest] == 0) --longest;
  if (problems.ignores(rule::kCutName) || !lengths_pile_up(facts, longest)) return;
  Diagnostics ignored(1);
  std::unordered_set<std::string_view> different;
  map.for_each(ignored, [&](const Entry& entry) {
    if (entry.name.size() == longest && different.size() < kManyCut) different.insert(entry.name);
  });
  if (different.size() < kManyCut) return;
  map.for_each(ignored, [&](const Entry& entry) {
    if (entry.name.size() != longest) return;
    say(map, entry, longest - 1, rule::kCutName,
        "as long as the longest of all names, like many others: perhaps cut off", problems);
  });
}

/// A name's hash, and on how many ranges it stands.
using Frequency = std::pair<std::uint64_t, std::uint64_t>;

/// The hashes that occur more than `many` times, in order. Counts in a small table first: only what
/// falls on a full counter is looked at closely, and that is nothing in most maps.
std::vector<Frequency> frequent_hashes(const MmapVector<std::uint64_t>& hashes, std::size_t many) {
  std::vector<std::uint32_t> counters(std::bit_ceil(hashes.size() / 2 + 1));
  const std::uint64_t mask = counters.size() - 1;
  for (std::size_t i = 0; i < hashes.size(); ++i) ++counters[hashes[i] & mask];
  std::vector<std::uint64_t> candidates;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (counters[hashes[i] & mask] > many) candidates.push_back(hashes[i]);
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<Frequency> frequent;
  for (auto first = candidates.begin(); first != candidates.end();) {
    const auto last = std::upper_bound(first, candidates.end(), *first);
    const auto count = static_cast<std::uint64_t>(last - first);
    if (count > many) frequent.emplace_back(*first, count);
    first = last;
  }
  return frequent;
}

/// PM033: names on very many ranges, each once, at its first line.
void check_repeated_names(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  constexpr std::size_t kMany = 100;
  if (problems.ignores(rule::kManyRanges) || facts.name_hashes.size() <= kMany) return;
  std::vector<Frequency> frequent = frequent_hashes(facts.name_hashes, kMany);
  std::size_t left = frequent.size();
  Diagnostics ignored(1);
  Map::LineReader lines(map);
  while (left != 0) {
    const std::optional<Entry> entry = lines.next(ignored);
    if (!entry) return;
    const std::uint64_t hash = std::hash<std::string_view>()(entry->name);
    const auto at = std::lower_bound(frequent.begin(), frequent.end(), Frequency(hash, 0));
    if (at == frequent.end() || at->first != hash || at->second == 0) continue;
    say(map, *entry, 0, rule::kManyRanges,
        "this name is on " + std::to_string(at->second) + " ranges", problems);
    at->second = 0;
    --left;
  }
}

}  // namespace

void check_names_together(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  check_cut_names(map, facts, problems);
  check_repeated_names(map, facts, problems);
}

}  // namespace perfmap::lint_rules
