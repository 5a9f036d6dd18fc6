#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
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

/// The length of the valid UTF-8 sequence at the start of `text`; 0 if it is invalid. Overlong
/// forms, surrogates and values above U+10FFFF are invalid. `text` is not empty.
std::size_t utf8_length(std::string_view text) noexcept;

/// The code point of the valid sequence of `length` bytes at the start of `text`.
char32_t utf8_decode(std::string_view text, std::size_t length) noexcept;

bool is_utf8(std::string_view text) noexcept;

/// Characters that are invisible, change the direction of the text around them, or control a
/// terminal (U+0080 to U+009F do, like their 7-bit forms).
bool is_invisible(char32_t point) noexcept;

/// True if every byte is printable ASCII or a blank, so that escapes and checks can be skipped.
bool is_plain_ascii(std::string_view text) noexcept;

/// How much room write_name() needs for this name, and cut_name() after it. O(name).
std::size_t escaped_size(std::string_view name) noexcept;

/// The steps that build a name in a map, in at most room_for_name() bytes each; they return the
/// end. write_name() does what escape_map_name() documents; escape_name() only adds the \xNN;
/// cut_name() does what append_portable_map_name() does with more than `max` bytes.
char* write_name(char* out, std::string_view name) noexcept;
char* escape_name(char* out, std::string_view name) noexcept;
char* cut_name(char* begin, char* end, std::size_t max) noexcept;
constexpr std::size_t room_for_name(std::size_t size) noexcept { return 4 * size + 4; }

/// RFC 4648 with padding.
std::string to_base64(std::string_view bytes);

/// Nothing if the text is not canonical base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace perfmap
