#include "answers/lint/line_rules.hpp"

#include <algorithm>
#include <functional>

#include "map/map_scan.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::uint64_t kHugeSize = std::uint64_t{64} << 20;
constexpr std::uint64_t kFirstUserAddress = std::uint64_t{64} << 10;
constexpr std::size_t kShortLine = 4096;
constexpr std::uint64_t kUserAddressEnd = std::uint64_t{1} << 56;  // 57-bit x86-64, 52-bit arm64

/// The characters of the size field, for a line that is an entry.
std::string_view size_field(std::string_view line, std::string_view name) noexcept {
  std::string_view before = line.substr(0, static_cast<std::size_t>(name.data() - line.data()));
  const std::size_t end = before.find_last_not_of(" \t,");
  before = before.substr(0, end + 1);
  return before.substr(before.find_last_of(" \t,") + 1);
}

/// PM106, PM107, PM109: what an entry says about itself.
void check_range(std::string_view line, const Location& at, const Entry& entry,
                 Diagnostics& problems) {
  const auto place = [&](std::string_view part) {
    const auto skipped = static_cast<std::uint64_t>(part.data() - line.data());
    return Location{at.offset + skipped, at.line, at.column + skipped};
  };
  // The last byte of the address space, as tidy writes it: with a size, readers' sums would be 0.
  const bool is_last_byte = entry.range.begin == UINT64_MAX;
  if (entry.range.size == 0 && !is_last_byte && written_size(line, entry) == 0) {
    problems.add(rule::kSizeZero, place(size_field(line, entry.name)),
                 "size 0: only the first byte has this name");
  }
  if (entry.range.size > kHugeSize) {
    problems.add(rule::kHugeSize, place(size_field(line, entry.name)),
                 entry.range.size > UINT32_MAX ? "a size above 4 GiB" : "a size above 64 MiB");
  }
  if (entry.range.begin < kFirstUserAddress || entry.range.begin >= kUserAddressEnd) {
    problems.add(rule::kOddAddress, at, "no user code is at this address");
  }
}

bool has_hex_letter(std::string_view text) noexcept {
  return text.find_first_of("abcdefABCDEF") != std::string_view::npos;
}

void remember(std::string_view line, const Entry& entry, LineFacts& facts) {
  facts.entries.append(entry.range.begin, entry.range.size, entry.offset);
  facts.name_hashes.append_unchecked(std::hash<std::string_view>()(entry.name));
  ++facts.names_of_length[std::min(entry.name.size(), LineFacts::kMaxCounted + 1)];
  if (facts.all_sizes_decimal) {
    facts.all_sizes_decimal = !has_hex_letter(size_field(line, entry.name));
  }
}

/// A canonical line needs no second look at its syntax if its numbers are lower case and have
/// neither prefix nor leading zeros.
bool is_canonical(std::string_view line, std::size_t first, std::size_t second) noexcept {
  if (line[0] == '0' || line.back() == '\r') return false;
  bool upper = false;
  for (std::size_t i = 0; i < second; ++i) upper |= line[i] >= 'A' && line[i] <= 'X';
  return !upper && (line[first + 1] != '0' || second == first + 2);
}

/// The entry of a line that needs no look at how it is written. The file may have changed since it
/// was scanned, so the first blank may be missing.
std::optional<Entry> canonical_entry(const ScannedLine& scanned, std::string_view line) noexcept {
  if (scanned.name == 0 || line.size() > kShortLine) return std::nullopt;
  const std::size_t first = line.find(' ');
  const std::size_t second = scanned.name - 1;
  if (first >= second || !is_canonical(line, first, second)) return std::nullopt;
  return Entry{{scanned.begin, scanned.size}, line.substr(scanned.name), scanned.offset};
}

}  // namespace

void check_lines(const Map& map, Diagnostics& problems, LineFacts& facts) {
  const std::string_view text = map.text();
  LineScanner scanner(text);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    facts.entries.make_room(batch.size());
    facts.name_hashes.make_room(batch.size());
    for (const ScannedLine& scanned : batch) {
      const Location at{scanned.offset, ++facts.lines, 1};
      std::string_view line = text.substr(scanned.offset);
      line = line.substr(0, scanned.length < UINT32_MAX ? scanned.length : line.find('\n'));
      std::optional<Entry> entry = canonical_entry(scanned, line);
      if (!entry) entry = check_syntax(line, at, problems);
      if (!entry) continue;
      check_range(line, at, *entry, problems);
      if (!is_unsuspicious(entry->name)) check_name(line, at, entry->name, problems);
      remember(line, *entry, facts);
    }
  }
}

}  // namespace perfmap::lint_rules
