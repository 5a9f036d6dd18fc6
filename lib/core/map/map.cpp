// SPDX-License-Identifier: MIT
#include "perfmap/map.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/filler.hpp"
#include "base/text.hpp"
#include "map/map_scan.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

namespace {

/// The vector code may load this many bytes from a line's start, even past the end of the line.
constexpr std::size_t kReach = 64;

struct Cursor {
  const char* text;
  std::uint64_t size;
  std::uint64_t line;
  std::uint64_t searched;
};

void keep(ScannedLine& out, std::uint64_t offset, std::uint64_t end) noexcept {
  out.offset = offset;
  out.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - offset, UINT32_MAX));
  out.name = 0;
}

/// Finds line ends with memchr and leaves each line to parse_map_line(). Used for the last bytes of
/// a text and on processors without the vector code.
std::size_t scan_plainly(Cursor& at, ScannedLine* lines, std::size_t max) noexcept {
  std::size_t count = 0;
  while (count < max && at.line < at.size) {
    const std::uint64_t from = std::max(at.line, at.searched);
    const void* const found = std::memchr(at.text + from, '\n', at.size - from);
    const std::uint64_t end =
        found == nullptr ? at.size
                         : static_cast<std::uint64_t>(static_cast<const char*>(found) - at.text);
    keep(lines[count++], at.line, end);
    at.line = at.searched = std::min(end + 1, at.size);
  }
  return count;
}

#if defined(__x86_64__)

/// 2 if `text` starts with 0x or 0X, else 0.
inline unsigned prefix_length(const char* text) noexcept {
  return text[0] == '0' && (text[1] | 0x20) == 'x' ? 2 : 0;
}

/// Parses the line at `line` if it is canonical. kReach bytes from `line` are readable. A newline
/// is neither a digit nor a blank, so no byte after the line's end is taken for part of it. Then
/// the name is not empty.
__attribute__((target("avx2,bmi"), always_inline)) inline void parse_canonical(
    const char* const line, ScannedLine& out) noexcept {
  const char* text = line + prefix_length(line);
  const HexField begin = load_hex(text);
  text += begin.digits;
  if (begin.digits == 0 || *text != ' ') return;
  ++text;
  text += prefix_length(text);
  const HexField size = load_hex(text);
  text += size.digits;
  const bool named = static_cast<unsigned char>(text[1]) > ' ';
  // Size 0 fails this comparison (it wraps to the maximum) and takes the slow path, because it may
  // be filler, and so does one that may be two joined numbers. So may any line at a low address,
  // while its head is stored.
  if (size.digits == 0 || *text != ' ' || !named || size.value - 1 >= kLargestFunction) return;
  if (size.value - 1 >= ~begin.value) return;
  if (begin.value < kMaxFillerAddress) return;
  // The line's end was found before its bytes were read here, and they may have changed between.
  const auto name = static_cast<std::uint32_t>(text + 1 - line);
  if (name >= out.length) return;
  out.begin = begin.value;
  out.size = size.value;
  out.name = name;
}

/// Does both steps for a batch: finds newlines, 64 bytes at a time, then parses the lines they end.
__attribute__((target("avx2,bmi"))) std::size_t scan_avx2(Cursor& at, ScannedLine* lines,
                                                          std::size_t max) noexcept {
  if (at.size < kReach) return 0;
  const std::uint64_t safe = at.size - kReach;  // blocks and parsed lines start at or before this
  const __m256i newline = _mm256_set1_epi8('\n');
  std::size_t count = 0;
  while (at.searched <= safe && count + 64 <= max) {
    const char* const block = at.text + at.searched;
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 32));
    const auto low_mask =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, newline)));
    const auto high_mask =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, newline)));
    std::uint64_t mask = low_mask | std::uint64_t{high_mask} << 32;
    for (; mask != 0; mask &= mask - 1) {
      const std::uint64_t end = at.searched + _tzcnt_u64(mask);
      keep(lines[count++], at.line, end);
      at.line = end + 1;
    }
    at.searched += 64;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (lines[i].offset <= safe) parse_canonical(at.text + lines[i].offset, lines[i]);
  }
  return count;
}

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0;
  return has;
}

/// The line if it is canonical, else one without a name.
__attribute__((target("avx2,bmi"))) ScannedLine canonical_line(std::string_view line,
                                                               std::uint64_t offset) noexcept {
  ScannedLine scanned{};
  keep(scanned, offset, offset + line.size());
  parse_canonical(line.data(), scanned);
  return scanned;
}

#endif

std::size_t scan(Cursor& at, ScannedLine* lines, std::size_t max) noexcept {
#if defined(__x86_64__)
  if (has_avx2()) {
    for (;;) {
      const std::size_t count = scan_avx2(at, lines, max);
      if (count != 0) return count;
      if (at.size < kReach || at.searched > at.size - kReach) break;
    }
  }
#endif
  return scan_plainly(at, lines, max);
}

}  // namespace

std::span<const ScannedLine> LineScanner::next() noexcept {
  Cursor at{text_.data(), text_.size(), line_, searched_};
  const std::size_t count = scan(at, lines_.data(), lines_.size());
  line_ = at.line;
  searched_ = at.searched;
  return {lines_.data(), count};
}

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& rest) noexcept {
  std::size_t count = 0;
  while (count < rest.size() && is_blank(rest[count])) ++count;
  rest.remove_prefix(count);
}

/// Removes a number's characters from the front of `rest`, and the separator that follows them:
/// blanks or one comma.
std::string_view take_field(std::string_view& rest) noexcept {
  std::size_t length = 0;
  while (length < rest.size() && !is_blank(rest[length]) && rest[length] != ',') ++length;
  const std::string_view field = rest.substr(0, length);
  rest.remove_prefix(length);
  if (!rest.empty() && rest[0] == ',') {
    rest.remove_prefix(1);
  } else {
    skip_blanks(rest);
  }
  return field;
}

bool is_signed(std::string_view field) noexcept {
  return field.size() > 1 && (field[0] == '-' || field[0] == '+') && parse_hex(field.substr(1));
}

LineFault bad_number(std::string_view field, const Rule& rule, std::string_view message) noexcept {
  if (is_signed(field)) return {&rule::kSignedNumber, field, "the number has a sign"};
  return {&rule, field, message};
}

constexpr std::array<std::int8_t, 256> digit_table() {
  std::array<std::int8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    table[static_cast<std::size_t>(c)] =
        static_cast<std::int8_t>(c < 128 ? hex_digit(static_cast<char>(c)) : -1);
  }
  return table;
}
constexpr std::array<std::int8_t, 256> kDigits = digit_table();

/// Whether "SIZE NAME" begins at `at`: a hexadecimal number, a blank and another character.
bool size_and_name_at(std::string_view text, std::size_t at) noexcept {
  const bool prefixed = text.substr(at, 2) == "0x";
  const std::size_t start = prefixed ? at + 2 : at;
  std::size_t end = start;
  while (end < text.size() && is_lower_hex(text[end])) ++end;
  const std::size_t max = prefixed ? 16 : 8;
  return end > start && end - start <= max && end + 1 < text.size() && text[end] == ' ' &&
         text[end + 1] != ' ';
}

}  // namespace

std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept {
  if (text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit{kDigits[static_cast<unsigned char>(c)]};
    if (digit < 0 || value >> 60 != 0) return std::nullopt;
    value = value << 4 | static_cast<unsigned>(digit);
  }
  return value;
}

// Grammar: blanks? hex separator hex separator name CR?  Fields are split first and parsed as a
// whole, so that `face_book` is not read as a number and a rest.
std::optional<Entry> read_map_line(std::string_view line, std::uint64_t offset,
                                   LineFault& fault) noexcept {
  std::string_view rest = line;
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  if (offset == 0 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  skip_blanks(rest);
  if (rest.empty() || rest[0] == '#' || is_filler(line)) return std::nullopt;

  const std::string_view begin_field = take_field(rest);
  const std::optional<Address> begin = parse_hex(begin_field);
  if (!begin) {
    fault = bad_number(begin_field, rule::kBadAddress, "expected a hexadecimal address");
    return std::nullopt;
  }
  const std::string_view size_field = take_field(rest);
  const std::optional<std::uint64_t> size = parse_hex(size_field);
  if (!size && !(size_field.empty() && rest.empty())) {
    fault = bad_number(size_field, rule::kBadSize, "expected a hexadecimal size in bytes");
    return std::nullopt;
  }
  skip_blanks(rest);
  if (rest.empty()) {
    fault = {&rule::kTooFewFields, rest, "expected address, size and name"};
    return std::nullopt;
  }
  if (*size > kLargestFunction && size_and_name_at(rest, 0)) {
    fault = {&rule::kGluedLines, size_field,
             "the size ends in the address of another entry: two writes were joined into one line"};
    return std::nullopt;
  }
  const AddressRange range = AddressRange::within_space(*begin, *size);
  if (*size != range.size) {
    fault = {&rule::kAddressWrap, size_field, "address + size exceeds the address space"};
  }
  return Entry{range, rest, offset};
}

std::uint64_t written_size(std::string_view line, const Entry& entry) noexcept {
  if (entry.range.last() != UINT64_MAX) return entry.range.size;
  std::string_view rest = line;
  if (entry.offset == 0 && rest.starts_with(kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  skip_blanks(rest);
  take_field(rest);
  return parse_hex(take_field(rest)).value_or(entry.range.size);
}

std::optional<Entry> parse_map_line(std::string_view line, const Location& at,
                                    Diagnostics& problems) {
  LineFault fault;
  const std::optional<Entry> entry = read_map_line(line, at.offset, fault);
  if (fault.rule != nullptr) {
    // The part is a view into the line, which gives its column.
    const auto skipped = static_cast<std::uint64_t>(fault.part.data() - line.data());
    problems.add(*fault.rule, {at.offset + skipped, at.line, at.column + skipped}, fault.message);
  }
  return entry;
}

namespace {

/// Random bytes have a line that begins with two numbers every few MiB, but hardly ever one that is
/// text to its end.
bool is_text(std::string_view line) noexcept {
  const auto is_odd = [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 && byte != '\t' && byte != '\r';
  };
  return std::none_of(line.begin(), line.end(), is_odd) && is_utf8(line);
}

}  // namespace

StreamCheck check_map_start() {
  return [seen = std::size_t{0}](std::string_view begin) mutable -> Result<StreamStart> {
    while (seen < begin.size()) {
      const std::size_t newline = begin.find('\n', seen);
      if (newline == std::string_view::npos) break;  // the line goes on
      LineFault fault;
      const std::string_view line = begin.substr(seen, newline - seen);
      if (read_map_line(line, seen, fault) && is_text(line)) return StreamStart::accepted;
      seen = newline + 1;
    }
    return StreamStart::undecided;
  };
}

namespace {

struct Number {
  std::uint64_t value = 0;
  std::size_t consumed = 0;  // 0 if there is no number, like endptr
};

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_hex_at(std::string_view text, std::size_t i) noexcept {
  return i < text.size() && hex_digit(text[i]) >= 0;
}

/// strtoull(text, &end, 16) in the C locale.
Number strtoull16(std::string_view text) noexcept {
  std::size_t i = 0;
  while (i < text.size() && is_space(text[i])) ++i;
  const bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  const bool prefix =
      is_hex_at(text, i) && text[i] == '0' && i + 1 < text.size() && (text[i + 1] | 0x20) == 'x';
  if (prefix && is_hex_at(text, i + 2)) i += 2;
  if (!is_hex_at(text, i)) return {};
  Number number;
  bool overflow = false;
  for (; is_hex_at(text, i); ++i) {
    overflow = overflow || number.value >> 60 != 0;
    number.value = number.value << 4 | static_cast<unsigned>(hex_digit(text[i]));
  }
  if (negative) number.value = 0 - number.value;
  if (overflow) number.value = UINT64_MAX;
  number.consumed = i;
  return number;
}

}  // namespace

std::optional<Entry> read_perf_line(std::string_view line, std::uint64_t offset) noexcept {
  if (line.empty()) return std::nullopt;
  line.remove_suffix(1);
  // C strings end at the first NUL; the length checks below use the whole line.
  const std::string_view c_string = line.substr(0, line.find('\0'));
  const auto from = [&](std::size_t at) {
    return at < c_string.size() ? c_string.substr(at) : std::string_view();
  };
  const Number start = strtoull16(c_string);
  std::size_t at = start.consumed + 1;
  if (at + 2 >= line.size()) return std::nullopt;
  const Number size = strtoull16(from(at));
  at += size.consumed + 1;
  if (at + 2 >= line.size()) return std::nullopt;
  return Entry{{start.value, size.value}, from(at), offset};
}

// A name may be part of a file that another process changes meanwhile, so its bytes are copied
// before the room for their escapes is measured.

void append_escaped_map_name(std::string& out, std::string_view name) {
  const std::size_t start = out.size();
  out += name;
  if (is_plain_map_name(std::string_view(out).substr(start))) return;
  const std::string copy = out.substr(start);
  out.resize(start + escaped_size(copy));
  char* const begin = out.data() + start;
  out.resize(start + static_cast<std::size_t>(write_name(begin, copy) - begin));
}

std::string escape_map_name(std::string_view name) {
  std::string out;
  append_escaped_map_name(out, name);
  return out;
}

void append_portable_map_name(std::string& out, std::string_view name) {
  const std::size_t before = std::min(name.find_first_not_of(' '), name.size());
  const std::string_view begun = without_first(name, before);
  const std::string_view trimmed = first_bytes(begun, begun.find_last_not_of(' ') + 1);
  // No byte becomes less than one: of a name of any length, this is all that is kept.
  std::array<char, kMaxPortableName + 4> room;
  const std::string_view copy(room.data(), trimmed.copy(room.data(), room.size()));
  if (trimmed.size() == name.size() && name.size() <= kMaxPortableName && is_plain_map_name(copy)) {
    out += copy;
    return;
  }
  const std::size_t start = out.size();
  out.resize(start + escaped_size(copy));
  char* const to = out.data() + start;
  char* const end =
      trimmed.size() <= kMaxPortableName ? write_name(to, copy) : escape_name(to, copy);
  char* const cut = cut_name(to, end, kMaxPortableName);
  out.resize(start + static_cast<std::size_t>(cut - to));
}

namespace {

/// A line's number is the number at the start of its block (from a table) plus the newlines
/// between, so at most this many bytes are counted.
constexpr std::uint64_t kLineBlock = 4096;

std::uint64_t count_newlines(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

Map::Map(Input input, Options options) : input_(std::move(input)), options_(std::move(options)) {
  settle_text();
}

void Map::settle_text() noexcept {
  text_ = input_.text();
  if (options_.growing) text_ = text_.substr(0, text_.rfind('\n') + 1);
  ends_in_part_ = text_.size() != input_.text().size();
  const std::size_t with_filler = text_.size();
  text_ = without_filler(text_, options_.growing || text_.ends_with('\n'));
  if (options_.growing || text_.size() != with_filler) input_.commit(text_.size());
}

std::optional<Entry> Map::entry_at(std::uint64_t offset) const noexcept {
  // In the rest of a truncated file, lines may end anywhere or not at all.
  if (offset >= text_.size() || input_.was_truncated()) return std::nullopt;
  const std::string_view rest = text_.substr(offset);
  const std::string_view line = rest.substr(0, rest.find('\n'));
#if defined(__x86_64__)
  if (rest.size() >= kReach && has_avx2()) {
    const ScannedLine scanned = canonical_line(line, offset);
    if (scanned.name != 0)
      return Entry{{scanned.begin, scanned.size}, name_of(scanned, line), offset};
  }
#endif
  LineFault ignored;
  return read_map_line(line, offset, ignored);
}

std::uint64_t Map::written_size(const Entry& entry) const noexcept {
  if (entry.range.last() != UINT64_MAX || entry.offset >= text_.size()) return entry.range.size;
  const std::string_view rest = text_.substr(entry.offset);
  return perfmap::written_size(rest.substr(0, rest.find('\n')), entry);
}

std::uint64_t Map::line_number(std::uint64_t offset) const {
  offset = std::min<std::uint64_t>(offset, text_.size());
  if (newlines_before_.empty()) newlines_before_.push_back(0);
  for (std::uint64_t block = newlines_before_.size(); block * kLineBlock <= text_.size(); ++block) {
    const std::string_view before = text_.substr((block - 1) * kLineBlock, kLineBlock);
    newlines_before_.push_back(newlines_before_.back() + count_newlines(before));
  }
  const std::uint64_t block = offset / kLineBlock;
  const std::uint64_t start = block * kLineBlock;
  return 1 + newlines_before_[block] + count_newlines(text_.substr(start, offset - start));
}

Result<Growth> Map::refresh() {
  const std::size_t had = text_.size();
  Result<Growth> growth = input_.refresh();
  if (!growth) return growth;
  settle_text();
  // Without its last newlines, the text of a growing map ends before lines that were read already.
  if (*growth == Growth::appended && text_.size() < had) growth = Growth::replaced;
  if (*growth == Growth::replaced) newlines_before_.clear();
  if (*growth == Growth::appended && text_.size() == had) return Growth::unchanged;
  return growth;
}

std::optional<Entry> Map::LineReader::next(Diagnostics& problems) {
  while (at_.offset < text_.size()) {
    const std::string_view rest = text_.substr(at_.offset);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::optional<Entry> entry = parse_map_line(line, at_, problems);
    at_.offset += line.size() + 1;
    ++at_.line;
    if (entry) return entry;
  }
  return std::nullopt;
}

namespace {

/// How many lower-case hexadecimal digits come right before `end`.
std::size_t digits_before(std::string_view text, std::size_t end) noexcept {
  std::size_t count = 0;
  while (count < end && is_lower_hex(text[end - 1 - count])) ++count;
  return count;
}

/// The length of the address that ends before `end`, or 0. With a 0x prefix, any number counts.
/// Without one, at least 9 digits are needed, because shorter numbers also occur in names, and at
/// most 12 are taken, because the letters a to f before an address look like part of it.
std::size_t address_before(std::string_view text, std::size_t end) noexcept {
  const std::size_t digits = digits_before(text, end);
  const std::size_t start = end - digits;
  const bool prefixed =
      start >= 1 && text[start - 1] == 'x' && start >= 2 && text[start - 2] == '0';
  if (prefixed) return digits >= 1 && digits <= 16 ? digits + 2 : 0;
  return digits >= 9 ? std::min<std::size_t>(digits, 12) : 0;
}

}  // namespace

std::size_t glued_entry(std::string_view name) noexcept {
  for (std::size_t blank = name.find(' '); blank != std::string_view::npos;
       blank = name.find(' ', blank + 1)) {
    if (!size_and_name_at(name, blank + 1)) continue;
    const std::size_t address = address_before(name, blank);
    if (address != 0 && blank > address) return blank - address;
  }
  return std::string_view::npos;
}

}  // namespace perfmap
