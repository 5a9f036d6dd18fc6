// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "perfmap/jit_format.hpp"

/// Bytes of names: hexadecimal, UTF-8, and how names are written. Needs libc alone.

namespace perfmap {

/// std::string_view::substr() needs libstdc++ to throw; these clamp to the text instead.
constexpr std::string_view first_bytes(std::string_view text, std::size_t count) noexcept {
  return {text.data(), count < text.size() ? count : text.size()};
}
constexpr std::string_view without_first(std::string_view text, std::size_t count) noexcept {
  text.remove_prefix(count < text.size() ? count : text.size());
  return text;
}

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Whether it has digits, and nothing else.
constexpr bool all_digits(std::string_view text) noexcept {
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return !text.empty();
}

/// A letter or digit of ASCII, or '_'.
constexpr bool is_word(char c) noexcept {
  const char lower = static_cast<char>(c | 0x20);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

inline bool is_lower_hex(char c) noexcept { return hex_digit(c) >= 0 && (c < 'A' || c > 'F'); }

/// Writes `value` in lower-case hexadecimal without prefix or leading zeros; at most 16 bytes.
/// Returns one past the last byte written.
inline char* write_hex(char* out, std::uint64_t value) noexcept {
  const int digits = value == 0 ? 1 : (67 - __builtin_clzll(value)) / 4;
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = "0123456789abcdef"[value & 15];
    value >>= 4;
  }
  return out + digits;
}

/// The eight hexadecimal digits of `value`, the first in the lowest byte in memory.
inline std::uint64_t eight_digits(std::uint32_t value) noexcept {
  std::uint64_t digits = __builtin_bswap32(value);
  digits = (digits | digits << 16) & 0x0000ffff0000ffff;
  digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
  digits = (digits >> 4 | digits << 8) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
  const std::uint64_t text = digits + 0x3030303030303030 + letters * ('a' - '0' - 10);
  return std::endian::native == std::endian::little ? text : __builtin_bswap64(text);
}

/// A number in hexadecimal, held in registers: faster than write_hex(), and to be written several
/// times. write() stores 16 bytes, whatever the number; the result is as long as write_hex() says.
struct HexDigits {
  explicit HexDigits(std::uint64_t value) noexcept
      : count(value == 0 ? 1 : (67U - static_cast<unsigned>(__builtin_clzll(value))) / 4) {
    const std::uint64_t shifted = value << (64 - 4 * count);
    high = eight_digits(static_cast<std::uint32_t>(shifted >> 32));
    low = eight_digits(static_cast<std::uint32_t>(shifted));
  }
  char* write(char* out) const noexcept {
    std::memcpy(out, &high, sizeof high);
    std::memcpy(out + sizeof high, &low, sizeof low);
    return out + count;
  }
  std::uint64_t high;
  std::uint64_t low;
  unsigned count;
};

/// The length of the valid UTF-8 sequence at the start of `text`; 0 if it is invalid. Overlong
/// forms, surrogates and values above U+10FFFF are invalid. `text` is not empty.
std::size_t utf8_length(std::string_view text) noexcept;

/// The code point of the valid sequence of `length` bytes at the start of `text`.
char32_t utf8_decode(std::string_view text, std::size_t length) noexcept;

bool is_utf8(std::string_view text) noexcept;

/// True if every byte is printable ASCII or a blank, so that escapes and checks can be skipped.
bool is_plain_ascii(std::string_view text) noexcept;

/// How much room write_name() needs for this name, and cut_name() after it. O(name).
std::size_t escaped_size(std::string_view name) noexcept;

/// The steps that build a name in a map, in at most room_for_name() bytes each; they return the
/// end. write_name() does what escape_map_name() documents; escape_name() only adds the \xNN;
/// cut_name() does what append_portable_map_name() does with more than `max` bytes.
char* write_name(char* out, std::string_view name, NameOf source = NameOf::file) noexcept;
char* escape_name(char* out, std::string_view name, NameOf source = NameOf::file) noexcept;
char* cut_name(char* begin, char* end, std::size_t max) noexcept;
constexpr std::size_t room_for_name(std::size_t size) noexcept { return 4 * size + 4; }

/// The name as the writers write it: itself if that is possible, else escaped and cut, in `room`.
using WrittenNameRoom = char[room_for_name(kMaxPortableName + 8)];
std::string_view written_name(std::string_view name, NameOf source, WrittenNameRoom& room) noexcept;

}  // namespace perfmap
