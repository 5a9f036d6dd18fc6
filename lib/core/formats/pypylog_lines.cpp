#include "formats/pypylog_lines.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/hex_field.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kSlice = std::size_t{32} << 10;
constexpr std::size_t kMostFound = kSlice / 2 + 3;  // a line has two bytes; two more may be written
constexpr std::size_t kNumberReach = 17;            // bytes that are loaded for one, from the '['

bool may_begin_section(char byte) noexcept {
  return byte == '[' || byte == '\x1b' || (byte >= '0' && byte <= '9');
}

/// What has been found so far, and where to go on.
struct Search {
  const char* text;
  std::uint64_t size;  // of the text
  std::uint64_t at;
  std::uint64_t newlines;
  bool at_start;
};

/// All before `end`; answers one past the last that was written.
LineStart* search_plainly(Search& search, std::uint64_t end, LineStart* out) noexcept {
  for (; search.at < end; ++search.at) {
    const char byte = search.text[search.at];
    if (search.at_start && may_begin_section(byte)) {
      *out++ = {search.at, search.newlines, 0, 0, false};
    }
    search.at_start = byte == '\n';
    search.newlines += search.at_start ? 1 : 0;
  }
  return out;
}

#if defined(__x86_64__)

struct Masks {
  std::uint64_t newlines;
  std::uint64_t marks;  // bytes that may begin a section line
};

__attribute__((target("avx2,popcnt,bmi"), always_inline)) inline Masks masks_of(
    const char* text) noexcept {
  Masks masks{0, 0};
  for (unsigned half = 0; half < 2; ++half) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text) + half);
    const __m256i digit = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
    const __m256i is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digit, _mm256_set1_epi8(9)), digit);
    const __m256i is_mark = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('[')),
                                            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\x1b')));
    const auto newlines = static_cast<std::uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\n'))));
    const auto marks =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(is_digit, is_mark)));
    masks.newlines |= std::uint64_t{newlines} << (32 * half);
    masks.marks |= std::uint64_t{marks} << (32 * half);
  }
  return masks;
}

__attribute__((target("avx2,popcnt,bmi"), always_inline)) inline void read_number(
    const char* text, LineStart& start) noexcept {
  if (text[start.offset] != '[') return;
  const HexField number = load_hex(text + start.offset + 1);
  if (number.digits > 15) return;
  start.hex = number.value;
  start.digits = static_cast<std::uint8_t>(number.digits);
  start.has_letter = (number.letters & ((1U << number.digits) - 1)) != 0;
}

/// Writes where the lines of a block begin. There are seldom more than two, and how many there are
/// cannot be guessed: two are always written, and what is too much is overwritten.
__attribute__((target("avx2,popcnt,bmi,bmi2"), always_inline)) inline LineStart* write_starts(
    const Search& search, const Masks& masks, std::uint64_t hits, LineStart* out) noexcept {
  LineStart* const end = out + std::popcount(hits);
  for (unsigned i = 0; i < 2 || out < end; ++i) {
    const auto bit = static_cast<unsigned>(_tzcnt_u64(hits));
    const std::uint64_t before = _bzhi_u64(masks.newlines, bit);
    out->offset = search.at + bit;
    out->newlines = search.newlines + static_cast<unsigned>(std::popcount(before));
    hits &= hits - 1;
    ++out;
  }
  return end;
}

/// Whole blocks before `end`; what is left of less than one stays.
__attribute__((target("avx2,popcnt,bmi,bmi2"))) LineStart* search_blocks(
    Search& search, std::uint64_t end, LineStart* const found) noexcept {
  LineStart* out = found;
  for (; end - search.at >= kBlock; search.at += kBlock) {
    const Masks masks = masks_of(search.text + search.at);
    const std::uint64_t starts = masks.newlines << 1 | (search.at_start ? 1 : 0);
    out = write_starts(search, masks, starts & masks.marks, out);
    search.newlines += static_cast<unsigned>(std::popcount(masks.newlines));
    search.at_start = masks.newlines >> 63 != 0;
  }
  for (LineStart* start = found; start != out; ++start) {
    start->digits = 0;
    if (search.size - start->offset > kNumberReach) read_number(search.text, *start);
  }
  return out;
}

bool has_vectors() noexcept {
  static const bool has =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return has;
}

#else

LineStart* search_blocks(Search&, std::uint64_t, LineStart* found) noexcept { return found; }
bool has_vectors() noexcept { return false; }

#endif

}  // namespace

LineStarts::LineStarts() : found_(std::make_unique_for_overwrite<LineStart[]>(kMostFound)) {}

void LineStarts::begin(std::string_view text) noexcept {
  text_ = text;
  searched_ = newlines_ = 0;
  at_start_ = true;
}

std::optional<std::span<const LineStart>> LineStarts::next() {
  if (searched_ == text_.size()) return std::nullopt;
  const std::uint64_t end = std::min<std::uint64_t>(searched_ + kSlice, text_.size());
  Search search{text_.data(), text_.size(), searched_, newlines_, at_start_};
  LineStart* out = found_.get();
  if (has_vectors()) out = search_blocks(search, end, out);
  out = search_plainly(search, end, out);
  searched_ = search.at;
  newlines_ = search.newlines;
  at_start_ = search.at_start;
  return std::span<const LineStart>(found_.get(), out);
}

}  // namespace perfmap
