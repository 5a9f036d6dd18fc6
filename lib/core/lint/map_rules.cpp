// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/found_file.hpp"
#include "lint/checks.hpp"
#include "map/map_scan.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {
namespace lint_rules {
namespace {

// The file.

constexpr std::uint64_t kHugeBytes = 50'000'000;
constexpr std::uint64_t kHugeEntries = 1'000'000;
constexpr Location kFile{0, 1, 1};

void check_access(const FileFacts& facts, Diagnostics& problems) {
  if (facts.was_link) problems.add(rule::kNotRegularFile, kFile, kIsSymbolicLink);
  if (!facts.is_regular) {
    problems.add(rule::kNotRegularFile, kFile, kIsNotRegular);
    return;
  }
  if ((facts.mode & (S_IWGRP | S_IWOTH)) != 0) {
    problems.add(rule::kWritableByOthers, kFile,
                 (facts.mode & S_IWOTH) != 0 ? "all users can change the names in this map"
                                             : "its group can change the names in this map");
  }
  if ((facts.mode & S_IROTH) == 0 && facts.uid != 0 && facts.uid != ::geteuid()) {
    problems.add(rule::kUnreadable, kFile, "only the owner and root can read it");
  }
}

bool is_in_tmp(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(directory.c_str(), nullptr),
                                                         &std::free);
  return std::string_view(real ? real.get() : "").ends_with("/tmp");
}

/// Readers look only in /tmp, or in the process's own /tmp. A map that no process writes to is a
/// copy, as in a build's artifacts, and may be anywhere; a process with its pid may be any.
void check_directory(const Input& input, Diagnostics& problems, FileWriters* writers) {
  const std::string& path = input.name();
  if (problems.ignores(rule::kOddDirectory) || !pid_of_map_name(path) || is_in_tmp(path)) return;
  const FileFacts& facts = input.facts();
  if (!(writers != nullptr ? writers->find(facts) : find_writer(facts))) return;
  problems.add(rule::kOddDirectory, kFile, "readers look for maps only in /tmp");
}

/// An inherited pipe: its path shows how the map was passed, not where readers find it.
bool is_stream(const Input& input) {
  const std::string& name = input.name();
  const bool handed = name == "-" || name == "/dev/stdin" || name.starts_with("/dev/fd/") ||
                      name.starts_with("/proc/self/fd/");
  return handed && !input.facts().is_regular;
}

void check_encoding(std::string_view text, Diagnostics& problems) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    problems.add(rule::kEncodedFile, kFile, "UTF-16 text");
  } else if (text.starts_with("\xef\xbb\xbf")) {
    problems.add(rule::kEncodedFile, kFile, "a byte order mark");
  }
}

void check_end(std::string_view text, Diagnostics& problems) {
  if (text.empty() || text.back() == '\n') return;
  const auto newlines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  problems.add(rule::kNoFinalNewline, {text.size(), newlines + 1, text.size() - line + 1},
               "the last line has no newline: perf removes its last byte");
}

/// PM009, PM061-PM063, PM068-PM070: the file itself.
void check_file(const Map& map, Diagnostics& problems, FileWriters* writers) {
  const Input& input = map.input();
  if (input.facts().is_file && !is_stream(input)) {
    check_access(input.facts(), problems);
    if (input.facts().is_regular) check_directory(input, problems, writers);
  }
  if (map.text().empty()) problems.add(rule::kEmptyFile, kFile, "the map is empty");
  check_encoding(map.text(), problems);
  check_end(map.text(), problems);
}

/// PM067: the size of the map.
void check_amount(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  if (map.text().size() > kHugeBytes || facts.entries.count() > kHugeEntries) {
    problems.add(rule::kHugeFile, kFile,
                 "entries: " + std::to_string(facts.entries.count()) +
                     ", megabytes: " + std::to_string(map.text().size() / 1'000'000));
  }
}

// How a line is written.

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// PM004, PM013: how the number at `position` is written. Returns its end.
std::size_t check_number(const LineReport& line, std::size_t position) {
  std::string_view digits = line.text.substr(position);
  digits = digits.substr(0, digits.find_first_of(" \t,\r"));
  const std::size_t end = position + digits.size();
  if (digits.size() > 1 && digits[0] == '0' && (digits[1] | 0x20) == 'x') {
    line.add(position, rule::kHexPrefix, "the format has no 0x prefix");
    digits.remove_prefix(2);
  }
  const bool upper = std::ranges::any_of(digits, [](char c) { return c >= 'A' && c <= 'F'; });
  if (upper) line.add(position, rule::kNotCanonicalHex, "upper-case digits");
  if (digits.size() > 1 && digits[0] == '0') {
    line.add(position, rule::kNotCanonicalHex, "leading zeros");
  }
  return end;
}

/// PM005, PM006: the separator between two fields, at `start`. Returns where the next field begins.
std::size_t check_separator(const LineReport& line, std::size_t start) {
  const std::string_view rest = line.text.substr(start);
  std::size_t length = std::min(rest.find_first_not_of(" \t"), rest.size());
  const bool is_comma = rest.starts_with(',');
  if (is_comma) length = 1;
  if (is_comma || rest.substr(0, length).find('\t') != std::string_view::npos) {
    line.add(start, rule::kOddSeparator, "one blank separates two fields");
  }
  if (length > 1) line.add(start, rule::kExtraBlanks, "more than one blank between fields");
  return start + length;
}

bool looks_binary(std::string_view line) noexcept {
  std::size_t odd = 0;
  for (const char c : line.substr(0, 256)) {
    odd += static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' ? 1 : 0;
  }
  return odd > 4;
}

/// Where a line's fields may begin: after a byte order mark in the first line of a file.
std::size_t fields_start(std::string_view line, const Location& at) noexcept {
  return at.offset == 0 && line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

/// The part of a line that read_map_line() reads: all but one carriage return at the end.
std::string_view without_return(std::string_view line) noexcept {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

void check_spelling(const LineReport& line, std::size_t start, std::size_t content) {
  if (content != start) line.add(start, rule::kLeadingBlank, "a blank before the address");
  const std::size_t size = check_separator(line, check_number(line, content));
  check_separator(line, check_number(line, size));
}

/// PM004-PM007, PM011-PM015, and for a line that is not an entry, PM001-PM003 and PM010. Returns
/// the entry.
std::optional<Entry> check_syntax(const LineReport& report) {
  const std::string_view line = report.text;
  if (line.size() > kLongLine) report.add(0, rule::kNotText, "a line over 64 KiB");
  const std::string_view body = without_return(line);
  if (body.size() != line.size()) {
    report.add(body.size(), rule::kCarriageReturn, "a carriage return before the newline");
  }
  const std::size_t start = fields_start(line, report.at);
  const std::size_t content = std::min(body.find_first_not_of(" \t", start), body.size());
  if (content == body.size() || body[content] == '#') {
    report.add(start, rule::kCommentOrBlank,
               content == body.size() ? "a blank line" : "a comment: the format has none");
    return std::nullopt;
  }
  const std::optional<Entry> entry = parse_map_line(line, report.at, report.problems);
  if (entry) {
    check_spelling(report, start, content);
  } else {
    // For an entry, check_name() finds the NULs in its name.
    const std::size_t nul = line.find('\0');
    if (nul != std::string_view::npos) report.add(nul, rule::kNulByte, "a NUL byte");
    if (looks_binary(line)) report.add(0, rule::kNotText, "binary data");
  }
  return entry;
}

// Rules for single entries.

constexpr std::uint64_t kFirstUserAddress = std::uint64_t{64} << 10;
constexpr std::size_t kShortLine = 4096;
constexpr std::uint64_t kUserAddressEnd = std::uint64_t{1} << 56;  // 57-bit x86-64, 52-bit arm64

/// The text of the size field of a line that is an entry.
std::string_view size_field(std::string_view line, std::string_view name) noexcept {
  std::string_view before = line.substr(0, static_cast<std::size_t>(name.data() - line.data()));
  const std::size_t end = before.find_last_not_of(" \t,");
  before = before.substr(0, end + 1);
  return before.substr(before.find_last_of(" \t,") + 1);
}

/// PM106, PM107, PM109: the range of a single entry.
void check_range(const LineReport& line, const Entry& entry) {
  const auto size_at = [&] {
    return static_cast<std::size_t>(size_field(line.text, entry.name).data() - line.text.data());
  };
  // The last byte of the address space, as tidy writes it: with a size, readers would compute an
  // end of 0.
  const bool is_last_byte = entry.range.begin == UINT64_MAX;
  if (entry.range.size == 0 && !is_last_byte && written_size(line.text, entry) == 0) {
    line.add(size_at(), rule::kSizeZero, "size 0: only the first byte has this name");
  }
  if (entry.range.size > kLargestFunction) {
    line.add(size_at(), rule::kHugeSize,
             entry.range.size > UINT32_MAX ? "a size above 4 GiB" : "a size above 64 MiB");
  }
  if (entry.range.begin < kFirstUserAddress || entry.range.begin >= kUserAddressEnd) {
    line.add(0, rule::kOddAddress, "no user code is at this address");
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

/// A canonical line needs no syntax check if its numbers are lower case, without prefix or leading
/// zeros.
bool is_canonical(std::string_view line, std::size_t first, std::size_t second) noexcept {
  if (line[0] == '0' || line.back() == '\r') return false;
  bool upper = false;
  for (std::size_t i = 0; i < second; ++i) upper |= line[i] >= 'A' && line[i] <= 'X';
  return !upper && (line[first + 1] != '0' || second == first + 2);
}

/// The entry of a line that needs no syntax check. The file may have changed since the scan, so the
/// first blank may be missing; the name still lies within the line.
std::optional<Entry> canonical_entry(const ScannedLine& scanned, std::string_view line) noexcept {
  if (scanned.name == 0 || line.size() > kShortLine) return std::nullopt;
  const std::size_t first = line.find(' ');
  const std::size_t second = scanned.name - 1;
  if (first >= second || !is_canonical(line, first, second)) return std::nullopt;
  return Entry{{scanned.begin, scanned.size}, line.substr(scanned.name), scanned.offset};
}

/// PM001-PM015, PM020-PM035 except PM022 and PM033, PM106-PM109: all rules for single lines.
void check_lines(const Map& map, Diagnostics& problems, LineFacts& facts) {
  const std::string_view text = map.text();
  LineScanner scanner(text);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    facts.entries.make_room(batch.size());
    facts.name_hashes.make_room(batch.size());
    for (const ScannedLine& scanned : batch) {
      const Location at{scanned.offset, ++facts.lines, 1};
      const std::string_view line = line_of(scanned, text);
      std::optional<Entry> entry = canonical_entry(scanned, line);
      const LineReport report{line, at, problems};
      if (!entry) entry = check_syntax(report);
      if (!entry) continue;
      check_range(report, *entry);
      if (!is_unsuspicious(entry->name)) check_name(report, entry->name);
      remember(line, *entry, facts);
    }
  }
}

// The ranges, taken together.

const Rule& rule_for_same_start(const Entry& a, const Entry& b) noexcept {
  if (a.name != b.name) return rule::kReusedStart;
  return a.range.size == b.range.size ? rule::kDuplicate : rule::kNested;
}

RangeFinding finding(const Rule& rule, std::uint64_t a, std::uint64_t b) noexcept {
  return {&rule, EntryRef{std::max(a, b)}, EntryRef{std::min(a, b)}};
}

/// Prefetches the lines of entries with equal begin: their names are compared, and the lines lie
/// anywhere in memory.
void prefetch_twin(const Columns& entries, std::size_t i, std::span<const Map> maps) noexcept {
  if (i + 1 >= entries.count() || entries.begin[i] != entries.begin[i + 1]) return;
  for (const std::uint64_t line : {entries.line[i], entries.line[i + 1]}) {
    const EntryRef hit{line};
    __builtin_prefetch(maps[hit.map()].text().data() + hit.offset());
  }
}

/// for_each_conflict() for callers that have already read and sorted the entries of these maps.
void for_each_conflict(const Columns& sorted, std::span<const Map> maps,
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

Location line_location(const Map& map, std::uint64_t offset) {
  return {offset, map.line_number(offset), 1};
}

/// PM113: the first line that begins below its predecessor.
void check_order(const Map& map, const Columns& entries, Diagnostics& problems) {
  for (std::size_t i = 1; i < entries.count(); ++i) {
    if (entries.begin[i] >= entries.begin[i - 1]) continue;
    problems.add(rule::kNotSorted, line_location(map, entries.line[i]),
                 "starts before the previous entry: readers have to sort");
    return;
  }
}

/// The lines that own at least one address, by offset.
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
  // No entry is shorter than "0 0 x\n", so no two lines share a bit.
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

/// PM105: entries that later lines cover completely. An entry whose exact range was taken by
/// another is reported by PM101 or PM102.
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

/// Reads the hexadecimal digits of a value as a decimal number.
std::uint64_t read_as_decimal(std::uint64_t value) noexcept {
  std::uint64_t decimal = 0;
  for (int shift = 60; shift >= 0; shift -= 4) decimal = decimal * 10 + (value >> shift & 15);
  return decimal;
}

/// PM110: no size contains a letter, and most neighbours overlap unless sizes are read as decimal.
void check_decimal(const Columns& sorted, const LineFacts& facts, Diagnostics& problems) {
  constexpr std::size_t kFew = 16;
  if (!facts.all_sizes_decimal || sorted.count() < kFew) return;
  std::size_t fixed = 0;
  for (std::size_t i = 0; i + 1 < sorted.count(); ++i) {
    const std::uint64_t gap = sorted.begin[i + 1] - sorted.begin[i];
    if (sorted.size[i] > gap && read_as_decimal(sorted.size[i]) <= gap && gap != 0) ++fixed;
  }
  if (fixed * 2 < sorted.count()) return;
  problems.add(rule::kDecimalSizes, {0, 1, 1},
               "sizes look decimal: as decimal numbers, they cause " + std::to_string(fixed) +
                   " fewer overlaps");
}

/// PM101-PM104, and PM114 for all of them together. Returns whether entries cover others, beyond
/// exact repetition.
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
                     " % of the entries overlap others: use a jitdump, which has times");
  }
  return reused != 0;
}

/// PM101-PM105, PM110, PM113, PM114. Sorts `facts.entries`.
void check_ranges(const Map& map, LineFacts& facts, Diagnostics& problems) {
  check_order(map, facts.entries, problems);
  sort_columns(facts.entries);
  check_decimal(facts.entries, facts, problems);
  if (check_conflicts(map, facts.entries, problems)) check_shadowed(map, facts.entries, problems);
}

}  // namespace

std::string_view shortened(std::string_view name) noexcept {
  std::size_t length = std::min<std::size_t>(name.size(), 120);
  while (length > 0 && length < name.size() &&
         (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) {
    --length;
  }
  return name.substr(0, length);
}

}  // namespace lint_rules

void for_each_conflict(std::span<const Map> maps, Diagnostics& problems,
                       const std::function<void(const RangeFinding&)>& visit) {
  Columns entries;
  for (std::size_t i = 0; i < maps.size(); ++i) read_columns(maps[i], i, 0, 1, entries, problems);
  sort_columns(entries);
  lint_rules::for_each_conflict(entries, maps, visit);
}

std::string message_of(const RangeFinding& finding, std::span<const Map> maps) {
  const char* const verb = finding.rule == &rule::kDuplicate     ? "repeats '"
                           : finding.rule == &rule::kReusedStart ? "starts at the same address as '"
                           : finding.rule == &rule::kNested      ? "lies inside or around '"
                                                                 : "overlaps '";
  const Entry other = entry_of(maps, finding.other).value_or(Entry{});
  std::string message = verb;
  message += lint_rules::shortened(other.name);
  message += "' of line ";
  const Map& map = maps[finding.other.map()];
  message += std::to_string(map.line_number(other.offset));
  if (finding.other.map() != finding.here.map()) message += " of " + map.input().name();
  return message;
}

void lint(const Map& map, Diagnostics& problems, FileWriters* writers) {
  const std::size_t before = problems.items().size();
  lint_rules::LineFacts facts;
  lint_rules::check_file(map, problems, writers);
  lint_rules::check_lines(map, problems, facts);
  lint_rules::check_producers(map, facts, problems);
  lint_rules::check_ranges(map, facts, problems);
  lint_rules::check_names_together(map, facts, problems);
  lint_rules::check_amount(map, facts, problems);
  problems.sort(before);
}

}  // namespace perfmap
