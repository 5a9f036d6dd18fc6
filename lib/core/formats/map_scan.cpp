#include "formats/map_scan.hpp"

#include <algorithm>
#include <cstring>

#include "base/hex.hpp"
#include "formats/hex_field.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace perfmap {
namespace {

/// Bytes behind a line's start that the vector code may load, whatever the line holds.
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

/// Finds ends of lines with memchr and leaves every line to parse_map_line(): for the last bytes of
/// a text, and for processors without the vector code.
std::size_t scan_plainly(Cursor& at, ScannedLine* lines, std::size_t most) noexcept {
  std::size_t count = 0;
  while (count < most && at.line < at.size) {
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

/// 2 where `text` starts with 0x or 0X.
inline unsigned prefix_length(const char* text) noexcept {
  return text[0] == '0' && (text[1] | 0x20) == 'x' ? 2 : 0;
}

/// Parses the line at `line`, which has kReach readable bytes, if it is canonical. A newline is
/// neither a digit nor a blank, so nothing behind the line's end can be taken for part of it.
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
  // Size 0 takes the long way, as it may be filler: it wraps to more than any address leaves.
  if (size.digits == 0 || *text != ' ' || !named || size.value - 1 >= ~begin.value) return;
  out.begin = begin.value;
  out.size = size.value;
  out.name = static_cast<std::uint32_t>(text + 1 - line);
}

/// Both steps for a batch: newlines 64 bytes at a time, then the lines they end.
__attribute__((target("avx2,bmi"))) std::size_t scan_avx2(Cursor& at, ScannedLine* lines,
                                                          std::size_t most) noexcept {
  if (at.size < kReach) return 0;
  const std::uint64_t safe = at.size - kReach;  // blocks start at or before this
  const __m256i newline = _mm256_set1_epi8('\n');
  std::size_t count = 0;
  while (at.searched <= safe && count + 64 <= most) {
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

#endif

std::size_t scan(Cursor& at, ScannedLine* lines, std::size_t most) noexcept {
#if defined(__x86_64__)
  if (has_avx2()) {
    for (;;) {
      const std::size_t count = scan_avx2(at, lines, most);
      if (count != 0) return count;
      if (at.size < kReach || at.searched > at.size - kReach) break;
    }
  }
#endif
  return scan_plainly(at, lines, most);
}

}  // namespace

std::span<const ScannedLine> LineScanner::next() noexcept {
  Cursor at{text_.data(), text_.size(), line_, searched_};
  const std::size_t count = scan(at, lines_.data(), lines_.size());
  line_ = at.line;
  searched_ = at.searched;
  return {lines_.data(), count};
}

}  // namespace perfmap
