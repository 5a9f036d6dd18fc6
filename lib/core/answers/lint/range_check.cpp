#include "perfmap/range_check.hpp"

#include <algorithm>

#include "answers/lint/conflicts.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

const Rule& rule_for_same_start(const Entry& a, const Entry& b) noexcept {
  if (a.name != b.name) return rule::kReusedStart;
  return a.range.size == b.range.size ? rule::kDuplicate : rule::kNested;
}

RangeFinding finding(const Rule& rule, std::uint64_t a, std::uint64_t b) noexcept {
  return {&rule, EntryRef{std::max(a, b)}, EntryRef{std::min(a, b)}};
}

/// Entries that begin together are compared by name, and their lines lie anywhere.
void prefetch_twin(const Columns& entries, std::size_t i, std::span<const Map> maps) noexcept {
  if (i + 1 >= entries.count() || entries.begin[i] != entries.begin[i + 1]) return;
  for (const std::uint64_t line : {entries.line[i], entries.line[i + 1]}) {
    const EntryRef hit{line};
    __builtin_prefetch(maps[hit.map()].text().data() + hit.offset());
  }
}

}  // namespace

namespace lint_rules {

std::string_view shortened(std::string_view name) noexcept {
  std::size_t length = std::min<std::size_t>(name.size(), 120);
  while (length > 0 && length < name.size() &&
         (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) {
    --length;
  }
  return name.substr(0, length);
}

}  // namespace lint_rules

void lint_rules::for_each_conflict(const Columns& sorted, std::span<const Map> maps,
                                   const std::function<void(const RangeFinding&)>& visit) {
  constexpr std::size_t kAhead = 16;
  std::size_t furthest = 0;
  std::uint64_t reach = 0;  // the last address of entry `furthest`
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    prefetch_twin(sorted, i + kAhead, maps);
    const std::uint64_t begin = sorted.begin[i];
    const std::uint64_t line = sorted.line[i];
    const std::uint64_t last = last_of(begin, sorted.size[i], line, maps);
    if (i != 0 && begin == sorted.begin[i - 1]) {
      const std::uint64_t before = sorted.line[i - 1];
      visit(finding(rule_for_same_start(entry_of(maps, EntryRef{before}).value_or(Entry{}),
                                        entry_of(maps, EntryRef{line}).value_or(Entry{})),
                    line, before));
    } else if (i != 0 && begin <= reach) {
      visit(finding(last <= reach ? rule::kNested : rule::kOverlap, line, sorted.line[furthest]));
    }
    if (i == 0 || last > reach) {
      reach = last;
      furthest = i;
    }
  }
}

void for_each_conflict(std::span<const Map> maps, Diagnostics& problems,
                       const std::function<void(const RangeFinding&)>& visit) {
  Columns entries;
  for (std::size_t i = 0; i < maps.size(); ++i) read_columns(maps[i], i, 0, 1, entries, problems);
  sort_columns(entries);
  lint_rules::for_each_conflict(entries, maps, visit);
}

std::string message_of(const RangeFinding& finding, std::span<const Map> maps) {
  const char* const verb = finding.rule == &rule::kDuplicate     ? "repeats '"
                           : finding.rule == &rule::kReusedStart ? "starts where '"
                           : finding.rule == &rule::kNested      ? "lies inside or around '"
                                                                 : "overlaps '";
  const Entry other = entry_of(maps, finding.other).value_or(Entry{});
  std::string message = verb;
  message += lint_rules::shortened(other.name);
  message += finding.rule == &rule::kReusedStart ? "' starts, of line " : "' of line ";
  const Map& map = maps[finding.other.map()];
  message += std::to_string(map.line_number(other.offset));
  if (finding.other.map() != finding.here.map()) message += " of " + map.input().name();
  return message;
}

}  // namespace perfmap
