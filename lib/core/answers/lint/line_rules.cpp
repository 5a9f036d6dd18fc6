#include "answers/lint/line_rules.hpp"

#include <functional>

#include "formats/map_scan.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::uint64_t kHugeSize = std::uint64_t{64} << 20;
constexpr std::uint64_t kFirstUserAddress = std::uint64_t{64} << 10;
constexpr std::uint64_t kUserAddressEnd = std::uint64_t{1} << 56;  // 57-bit x86-64, 52-bit arm64
constexpr std::size_t kMostLongest = 1 << 16;

void check_range(const Entry& entry, const Location& at, Diagnostics& problems) {
  if (entry.range.size == 0) {
    problems.add(rule::kSizeZero, at, "size 0: only the first byte has this name");
  }
  if (entry.range.size > kHugeSize) {
    problems.add(rule::kHugeSize, at,
                 entry.range.size > UINT32_MAX ? "a size above 4 GiB" : "a size above 64 MiB");
  }
  if (entry.range.begin < kFirstUserAddress || entry.range.begin >= kUserAddressEnd) {
    problems.add(rule::kOddAddress, at, "no user code is at this address");
  }
}

bool has_hex_letter(std::string_view text) noexcept {
  return text.find_first_of("abcdefABCDEF") != std::string_view::npos;
}

/// The characters of the size field, for a line that is an entry.
std::string_view size_field(std::string_view line, std::string_view name) noexcept {
  std::string_view before = line.substr(0, static_cast<std::size_t>(name.data() - line.data()));
  const std::size_t end = before.find_last_not_of(" \t,");
  before = before.substr(0, end + 1);
  return before.substr(before.find_last_of(" \t,") + 1);
}

void remember_name(std::string_view name, const Location& at, LineFacts& facts) {
  facts.name_hashes.push_back(std::hash<std::string_view>()(name));
  if (name.size() > facts.longest_name) {
    facts.longest_name = name.size();
    facts.longest.clear();
  }
  if (name.size() == facts.longest_name && facts.longest.size() < kMostLongest) {
    facts.longest.push_back(at);
  }
}

/// A canonical line needs no second look at its syntax if its numbers are lower case and have
/// neither prefix nor leading zeros.
bool is_canonical(std::string_view line, std::size_t numbers) noexcept {
  if (line[0] == '0' || line.back() == '\r') return false;
  bool upper = false;
  for (std::size_t i = 0; i < numbers; ++i) upper |= line[i] >= 'A' && line[i] <= 'X';
  if (upper) return false;
  const std::size_t blank = line.find(' ');
  return line[blank + 1] != '0' || line[blank + 2] == ' ';
}

}  // namespace

void check_lines(const Map& map, Diagnostics& problems, LineFacts& facts) {
  const std::string_view text = map.text();
  LineScanner scanner(text);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    for (const ScannedLine& scanned : batch) {
      const Location at{scanned.offset, ++facts.lines, 1};
      std::string_view line = text.substr(scanned.offset);
      line = line.substr(0, scanned.length < UINT32_MAX ? scanned.length : line.find('\n'));
      std::optional<Entry> entry;
      if (scanned.odd == 0) {
        const std::size_t name = line.find(' ', line.find(' ') + 1) + 1;
        if (is_canonical(line, name) && line.size() <= 4096) {
          entry = Entry{{scanned.begin, scanned.size}, line.substr(name), scanned.offset};
        }
      }
      if (!entry) entry = check_syntax(line, at, problems);
      if (!entry) continue;
      ++facts.entries;
      facts.all_sizes_decimal =
          facts.all_sizes_decimal && !has_hex_letter(size_field(line, entry->name));
      check_range(*entry, at, problems);
      if (!is_unsuspicious(entry->name)) check_name(line, at, entry->name, problems);
      remember_name(entry->name, at, facts);
    }
  }
}

}  // namespace perfmap::lint_rules
