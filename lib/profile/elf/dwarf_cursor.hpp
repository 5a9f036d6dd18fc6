// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/cursor.hpp"

namespace perfmap {

/// A Cursor that also reads DWARF's numbers: of variable length, or of a size given by a header.
class DwarfCursor : public Cursor {
 public:
  DwarfCursor(std::string_view bytes, std::endian order, std::uint64_t at = 0) noexcept
      : Cursor(bytes, order) {
    skip(at);
  }

  /// A number of 1, 2, 3, 4 or 8 bytes; any other size fails.
  std::uint64_t sized(unsigned size) noexcept {
    switch (size) {
      case 1: return u8();
      case 2: return u16();
      case 3: return u24();
      case 4: return u32();
      case 8: return u64();
      default: fail(); return 0;
    }
  }
  /// Bits beyond the 64th are dropped; more than 20 bytes are invalid.
  std::uint64_t uleb() noexcept {
    // Fast path: most numbers are small.
    if (at_ < bytes_.size() && (bytes_[at_] & 0x80) == 0) {
      return static_cast<unsigned char>(bytes_[at_++]);
    }
    return long_uleb();
  }
  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < kMaxLebBits; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(value);
    }
    fail();
    return 0;
  }
  /// Like c_string(), for short texts.
  void skip_c_string() noexcept {
    while (at_ < bytes_.size() && bytes_[at_] != 0) ++at_;
    skip(1);
  }
  /// The initial length of a unit, and whether the unit is in 64-bit DWARF.
  struct Length {
    std::uint64_t bytes = 0;
    std::uint8_t offset_size = 4;
  };
  Length unit_length() noexcept {
    const std::uint32_t first = u32();
    if (first < 0xfffffff0) return {first, 4};
    if (first == 0xffffffff) return {u64(), 8};
    fail();
    return {};
  }

 private:
  static constexpr unsigned kMaxLebBits = 140;

  std::uint64_t long_uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < kMaxLebBits; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }
  std::uint64_t u24() noexcept {
    const std::string_view three = bytes(3);
    if (three.empty()) return 0;
    const auto at = [&](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(three[i])};
    };
    const bool little = (std::endian::native == std::endian::little) != swapped_;
    return little ? at(0) | at(1) << 8 | at(2) << 16 : at(2) | at(1) << 8 | at(0) << 16;
  }
};

}  // namespace perfmap
