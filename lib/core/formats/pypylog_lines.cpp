#include "formats/pypylog_lines.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/hex_field.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kSlice = std::size_t{32} << 10;
constexpr std::size_t kNumberReach = 17;  // bytes that are loaded for one, from the '['

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

void search_plainly(Search& search, std::uint64_t end, std::vector<LineStart>& found) {
  for (; search.at < end; ++search.at) {
    const char byte = search.text[search.at];
    if (search.at_start && may_begin_section(byte))
      found.push_back({.offset = search.at, .newlines = search.newlines});
    search.at_start = byte == '\n';
    search.newlines += search.at_start ? 1 : 0;
  }
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

/// Whole blocks before `end`; what is left of less than one stays.
__attribute__((target("avx2,popcnt,bmi"))) void search_blocks(Search& search, std::uint64_t end,
                                                              std::vector<LineStart>& found) {
  for (; end - search.at >= kBlock; search.at += kBlock) {
    const Masks masks = masks_of(search.text + search.at);
    const std::uint64_t starts = masks.newlines << 1 | (search.at_start ? 1 : 0);
    for (std::uint64_t hits = starts & masks.marks; hits != 0; hits &= hits - 1) {
      const unsigned bit = static_cast<unsigned>(std::countr_zero(hits));
      const std::uint64_t before = masks.newlines & ((std::uint64_t{1} << bit) - 1);
      LineStart& start = found.emplace_back();
      start.offset = search.at + bit;
      start.newlines = search.newlines + static_cast<unsigned>(std::popcount(before));
      if (search.size - start.offset > kNumberReach) read_number(search.text, start);
    }
    search.newlines += static_cast<unsigned>(std::popcount(masks.newlines));
    search.at_start = masks.newlines >> 63 != 0;
  }
}

bool has_vectors() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

#else

void search_blocks(Search&, std::uint64_t, std::vector<LineStart>&) {}
bool has_vectors() noexcept { return false; }

#endif

}  // namespace

bool LineStarts::next(std::vector<LineStart>& found) {
  found.clear();
  if (searched_ == text_.size()) return false;
  const std::uint64_t end = std::min<std::uint64_t>(searched_ + kSlice, text_.size());
  Search search{text_.data(), text_.size(), searched_, newlines_, at_start_};
  if (has_vectors()) search_blocks(search, end, found);
  search_plainly(search, end, found);
  searched_ = search.at;
  newlines_ = search.newlines;
  at_start_ = search.at_start;
  return true;
}

}  // namespace perfmap
