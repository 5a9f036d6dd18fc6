#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace perfmap {
namespace {

bool continues(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // What the lead byte alone does not exclude: overlong forms, surrogates, beyond U+10FFFF.
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

char32_t utf8_decode(std::string_view text, std::size_t length) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0);
  char32_t point = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3fu);
  return point;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_invisible(char32_t point) noexcept {
  return (point >= 0x80 && point <= 0x9f) || (point >= 0x200b && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
         point == 0xfeff || point == 0xad || point == 0x61c;
}

bool is_plain_ascii(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  std::uint64_t odd = 0;
  std::size_t i = 0;
  // Eight bytes at a time: a top bit appears for a byte >= 0x80, below 0x20 or equal to 0x7f.
  const auto odd_bytes = [](std::uint64_t v) {
    const std::uint64_t low = (v & ~kTops) + kOnes * 0x60;  // top bit set where byte >= 0x20
    const std::uint64_t del = (v & ~kTops) + kOnes;         // top bit set where byte == 0x7f
    return (v | ~low | del) & kTops;
  };
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t v;
    std::memcpy(&v, text.data() + i, 8);
    odd |= odd_bytes(v);
  }
  if (odd != 0) return false;
  for (; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f) return false;
  }
  return true;
}

}  // namespace perfmap
