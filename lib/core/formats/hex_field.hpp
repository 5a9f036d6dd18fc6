#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>

namespace perfmap {

/// Loading 16 bytes at kAlign + n gives the shuffle that moves n digits to the right end and fills
/// up with zeros on the left.
alignas(32) inline constexpr std::uint8_t kAlign[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

/// The number that 16 bytes begin with.
struct HexField {
  std::uint64_t value;
  unsigned digits;   // 0 where there is no number; at most 16
  unsigned letters;  // a bit for each byte that is one of a-f, those behind the number included
};

__attribute__((target("avx2,bmi"), always_inline)) inline HexField load_hex(
    const char* text) noexcept {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  const __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
  const __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
  const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
  const auto mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(is_digit, is_letter)));
  const unsigned digits = _tzcnt_u32(~mask);
  const __m128i nibbles =
      _mm_blendv_epi8(digit, _mm_add_epi8(letter, _mm_set1_epi8(10)), is_letter);
  const __m128i aligned =
      _mm_shuffle_epi8(nibbles, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kAlign + digits)));
  const __m128i pairs = _mm_maddubs_epi16(aligned, _mm_set1_epi16(0x0110));
  const __m128i packed = _mm_packus_epi16(pairs, pairs);
  const auto big_endian = static_cast<std::uint64_t>(_mm_cvtsi128_si64(packed));
  return {__builtin_bswap64(big_endian), digits,
          static_cast<unsigned>(_mm_movemask_epi8(is_letter))};
}

}  // namespace perfmap

#endif
