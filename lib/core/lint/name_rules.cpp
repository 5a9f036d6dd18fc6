// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lint/checks.hpp"
#include "map/map_scan.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap::lint_rules {
namespace {

// Rules for single names.

constexpr std::size_t kShortest = 3;
constexpr std::size_t kLongest = 300;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

/// Itanium C++, Rust v0 and Swift. The check after the prefix excludes C's `_Reset` and Erlang's
/// `$string:to_upper/1`.
bool is_mangled(std::string_view name) noexcept {
  if (name.size() < 4) return false;
  const char next = name[2];
  if (name.starts_with("_Z")) return is_digit(next) || is_upper(next) || is_lower(next);
  if (name.starts_with("_R")) return std::string_view("CMXYNIB").find(next) != name.npos;
  return name.starts_with("$s") && (is_digit(next) || is_upper(next)) &&
         name.find_first_of(" :") == std::string_view::npos;
}

/// A placeholder, a decimal number, or an address: with 0x, or of at least eight digits, because
/// shorter ones such as `e2e` are names.
bool says_nothing(std::string_view name) noexcept {
  if (name == "<unknown>" || name == "[unknown]" || name == "unknown" || name == "(null)") {
    return true;
  }
  if (std::all_of(name.begin(), name.end(), is_digit)) return !name.empty();
  const bool prefixed = name.starts_with("0x") && name.size() > 2;
  if (prefixed) name.remove_prefix(2);
  return (prefixed || name.size() >= 8) && std::all_of(name.begin(), name.end(), is_lower_hex) &&
         std::any_of(name.begin(), name.end(), is_digit);
}

bool ends_in_blank(std::string_view name) noexcept {
  return !name.empty() && (name.back() == ' ' || name.back() == '\t');
}

/// PM010, PM024, PM025, PM035: each is reported at its first place in the name.
template <class Say>
void check_characters(std::string_view name, const Say& say) {
  bool bad_utf8 = false;
  bool nul = false;
  bool control = false;
  bool deceptive = false;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    const auto byte = static_cast<unsigned char>(name[i]);
    if (length == 0 && !std::exchange(bad_utf8, true)) {
      say(i, rule::kNotUtf8, "not UTF-8: some readers reject the whole map");
    }
    if (byte == 0 && !std::exchange(nul, true)) {
      say(i, rule::kNulByte, "a NUL byte: some readers end the name here");
    }
    const bool is_control = (byte < 0x20 && byte != 0) || byte == 0x7f;
    if (is_control && !std::exchange(control, true)) {
      say(i, rule::kControlByte, "a control character");
    }
    if (length > 1 && is_invisible(utf8_decode(name.substr(i), length)) &&
        !std::exchange(deceptive, true)) {
      say(i, rule::kDeceptiveName, "an invisible or direction-changing character");
    }
    i += std::max<std::size_t>(length, 1);
  }
}

/// Whether there is a byte, or an arrow, that plain names do not have. Branchless, so that
/// compilers can vectorize it.
bool has_odd_bytes(std::string_view name) noexcept {
  unsigned odd = 0;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    odd |= static_cast<unsigned>(static_cast<unsigned char>(byte - 0x20) >= 0x5f) |
           static_cast<unsigned>(byte == ';');
  }
  for (std::size_t i = 1; i < name.size(); ++i) {
    odd |= static_cast<unsigned>(name[i - 1] == '-') & static_cast<unsigned>(name[i] == '>');
  }
  return odd != 0;
}

/// Whether the first byte allows is_mangled() or says_nothing().
bool starts_oddly(std::string_view name) noexcept {
  switch (name[0]) {
    case '_':
    case '$':
    case '<':
    case '[':
    case '(':
    case 'u': return true;
    default: return is_lower_hex(name[0]) && is_lower_hex(name[name.size() - 1]);
  }
}

// Rules for all names together.

/// Reports a finding at `position` of an entry's name. The line number is computed only if the
/// finding is kept.
void say(const Map& map, const Entry& entry, std::size_t position, const Rule& rule,
         const std::string& message, Diagnostics& problems) {
  if (!problems.count(rule)) return;
  const auto place = static_cast<std::uint64_t>(entry.name.data() - map.text().data()) + position;
  problems.keep(
      {&rule, {place, map.line_number(entry.offset), place - entry.offset + 1}, message, 0});
}

constexpr std::size_t kManyCut = 8;

/// Whether many names have the maximum length: more than the next eight shorter lengths have
/// together, while other names are shorter. If all names have one length, that is intended.
bool lengths_pile_up(const LineFacts& facts, std::size_t longest) noexcept {
  constexpr std::size_t kShortestLimit = 48;
  if (longest < kShortestLimit || longest > LineFacts::kMaxCounted) return false;
  const auto* const of_length = facts.names_of_length.data();
  const std::uint64_t below =
      std::accumulate(of_length + longest - 8, of_length + longest, std::uint64_t{0});
  return of_length[longest] >= kManyCut && of_length[longest] > below &&
         of_length[longest] < facts.entries.count();
}

/// PM022: many distinct names that all end at the maximum length.
void check_cut_names(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  std::size_t longest = LineFacts::kMaxCounted + 1;
  while (longest > 0 && facts.names_of_length[longest] == 0) --longest;
  if (problems.ignores(rule::kCutName) || !lengths_pile_up(facts, longest)) return;
  Diagnostics ignored(1);
  std::unordered_set<std::size_t> different;  // by hash: the names themselves may change
  map.for_each(ignored, [&](const Entry& entry) {
    if (entry.name.size() != longest || different.size() >= kManyCut) return;
    different.insert(std::hash<std::string_view>()(entry.name));
  });
  if (different.size() < kManyCut) return;
  map.for_each(ignored, [&](const Entry& entry) {
    if (entry.name.size() != longest) return;
    say(map, entry, longest - 1, rule::kCutName,
        "this name and many others have the maximum length: they may be truncated", problems);
  });
}

/// The hash of a name, and how many ranges have the name.
using Frequency = std::pair<std::uint64_t, std::uint64_t>;

/// The hashes that occur more than `many` times, sorted. A first pass counts in a small table: only
/// hashes that fall on a full counter are examined, and in most maps there are none.
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

/// PM033: names with very many ranges; each is reported once, at its first line.
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
        "this name is used for " + std::to_string(at->second) + " ranges", problems);
    at->second = 0;
    --left;
  }
}

// Rules for producers.

constexpr std::size_t kSample = 4096;
constexpr std::uint64_t kFew = 10;

/// Counts names by the runtime that wrote them.
class Producers {
 public:
  void see(const Entry& entry) {
    const DecodedName name = decode_name(entry.name);
    const auto& own = runtime_info(name.runtime).names.own_code_rule.tiers;
    Count& count = counts_[static_cast<std::size_t>(name.runtime)];
    ++all_;
    const bool is_own = !name.tier.empty() && std::ranges::find(own, name.tier) != own.end();
    ++(is_own ? count.own : count.others);
    if (name.runtime == Runtime::unknown && !first_unmarked_) first_unmarked_ = entry;
  }

  bool breaks(const RuntimeInfo& runtime) const noexcept {
    const OwnCodeRule& rule = runtime.names.own_code_rule;
    const Count& count = of(runtime.runtime);
    return rule.rule != nullptr && count.own >= kFew &&
           (rule.is_whole_map ? count.own == all_ : count.others == 0);
  }
  /// Some runtimes mark every name, so a name without a mark comes from another writer.
  bool is_mixed() const noexcept {
    std::uint64_t marked = 0;
    for (const RuntimeInfo* const one : all_runtimes()) {
      if (!one->names.marks_all.empty()) marked += of(one->runtime).others;
    }
    return marked >= kFew && unmarked() >= kFew;
  }
  bool is_suspicious() const noexcept {
    return is_mixed() || std::ranges::any_of(all_runtimes(), [this](const RuntimeInfo* one) {
             return breaks(*one);
           });
  }
  /// For a mixed map: an example of the runtime that marks its names.
  std::string_view marked_by() const noexcept {
    std::string_view last;
    for (const RuntimeInfo* const one : all_runtimes()) {
      const std::string_view name = one->names.marks_all;
      if (!name.empty() && of(one->runtime).others != 0) last = name;
    }
    return last;
  }
  std::uint64_t unmarked() const noexcept { return of(Runtime::unknown).others; }
  const Entry& first_unmarked() const { return *first_unmarked_; }

 private:
  struct Count {
    std::uint64_t own = 0;  // names of the tiers that its rule is about
    std::uint64_t others = 0;
  };
  const Count& of(Runtime runtime) const noexcept {
    return counts_[static_cast<std::size_t>(runtime)];
  }

  std::array<Count, 32> counts_{};  // indexed by Runtime
  std::uint64_t all_ = 0;
  std::optional<Entry> first_unmarked_;
};

/// Every `step`th entry.
Producers look_at(const Map& map, const LineFacts& facts, std::size_t step) {
  Producers seen;
  for (std::size_t i = 0; i < facts.entries.count(); i += step) {
    if (const auto entry = map.entry_at(facts.entries.line[i])) seen.see(*entry);
  }
  return seen;
}

}  // namespace

bool is_unsuspicious(std::string_view name) noexcept {
  if (name.size() < kShortest || name.size() > kLongest || name.back() == ' ') return false;
  return !has_odd_bytes(name) && !starts_oddly(name) && glued_entry(name) == std::string_view::npos;
}

void check_name(const LineReport& line, std::string_view name) {
  const auto start = static_cast<std::size_t>(name.data() - line.text.data());
  const auto say = [&](std::size_t position, const Rule& rule, std::string_view message) {
    line.add(start + position, rule, message);
  };
  if (name.size() < kShortest) say(0, rule::kShortName, "perf drops names under three bytes");
  if (name.size() > kLongest) say(kLongest, rule::kLongName, "a name longer than 300 bytes");
  if (ends_in_blank(name))
    say(name.size() - 1, rule::kBlankAtNameEnd, "a blank at the end of the name");
  if (const std::size_t glued = glued_entry(name); glued != std::string_view::npos) {
    say(glued, rule::kGluedLines,
        "another entry begins here: two writes were joined into one line");
  }
  if (const std::size_t semicolon = name.find(';'); semicolon != std::string_view::npos) {
    say(semicolon, rule::kSemicolon, "a semicolon splits folded stacks");
  }
  if (const std::size_t arrow = name.find("->"); arrow != std::string_view::npos) {
    say(arrow, rule::kInlineChain, "a chain of inlined functions: readers show one frame");
  }
  if (is_mangled(name)) say(0, rule::kMangledName, "readers do not demangle the names of a map");
  if (says_nothing(name)) say(0, rule::kNoName, "this name does not identify a function");
  check_characters(name, say);
}

void check_names_together(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  check_cut_names(map, facts, problems);
  check_repeated_names(map, facts, problems);
}

void check_producers(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  constexpr Location kFile{0, 1, 1};
  const std::size_t step = facts.entries.count() / kSample + 1;
  Producers seen = look_at(map, facts, step);
  if (seen.is_suspicious() && step > 1) seen = look_at(map, facts, 1);
  for (const RuntimeInfo* const one : all_runtimes()) {
    const OwnCodeRule& own = one->names.own_code_rule;
    if (seen.breaks(*one)) problems.add(*own.rule, kFile, own.message);
  }
  if (!seen.is_mixed() || !problems.count(rule::kMixedProducers)) return;
  const std::uint64_t offset = seen.first_unmarked().offset;
  problems.keep({&rule::kMixedProducers,
                 {offset, map.line_number(offset), 1},
                 std::to_string(seen.unmarked()) + " names have no runtime's prefix, in a map of " +
                     std::string(seen.marked_by()),
                 0});
}

}  // namespace perfmap::lint_rules
