#pragma once

#include <cstdint>
#include <cstring>

#include "perfmap/cursor.hpp"

namespace perfmap {

/// Numbers of frames, read from a cursor.

inline std::uint8_t read_u8(Cursor& cursor) noexcept {
  const std::string_view byte = cursor.bytes(1);
  return byte.empty() ? 0 : static_cast<std::uint8_t>(byte.front());
}

inline std::uint16_t read_u16(Cursor& cursor, std::endian order) noexcept {
  const std::string_view bytes = cursor.bytes(2);
  std::uint16_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return order == std::endian::native ? value : __builtin_bswap16(value);
}

/// Bits beyond 64 are dropped.
inline std::uint64_t read_uleb(Cursor& cursor) noexcept {
  std::uint64_t value = 0;
  std::uint8_t byte = 0x80;
  for (unsigned shift = 0; (byte & 0x80) != 0 && cursor.ok(); shift += 7) {
    byte = read_u8(cursor);
    if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
  }
  return value;
}

}  // namespace perfmap
