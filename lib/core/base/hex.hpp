#pragma once

#include <cstdint>
#include <string>

namespace perfmap {

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

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

inline std::string to_hex(std::uint64_t value) {
  char digits[16];
  return {digits, write_hex(digits, value)};
}

}  // namespace perfmap
