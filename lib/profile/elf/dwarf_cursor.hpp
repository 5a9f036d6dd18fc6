#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace perfmap {

/// Reads the numbers of a DWARF section, and never beyond its end: what does not fit is 0 or empty,
/// and so is all that follows. perfmap::Cursor for variable lengths. Borrows the bytes.
class DwarfCursor {
 public:
  DwarfCursor(std::string_view bytes, std::endian order, std::uint64_t at = 0) noexcept
      : bytes_(bytes), swapped_(order != std::endian::native) {
    skip(at);
  }

  std::uint8_t u8() noexcept { return number<std::uint8_t>(); }
  std::uint16_t u16() noexcept {
    const auto value = number<std::uint16_t>();
    return swapped_ ? __builtin_bswap16(value) : value;
  }
  std::uint32_t u32() noexcept {
    const auto value = number<std::uint32_t>();
    return swapped_ ? __builtin_bswap32(value) : value;
  }
  std::uint64_t u64() noexcept {
    const auto value = number<std::uint64_t>();
    return swapped_ ? __builtin_bswap64(value) : value;
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
  /// Bits beyond the 64th are dropped; more than 20 bytes are no number.
  std::uint64_t uleb() noexcept {
    // Most are small.
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
  std::string_view bytes(std::uint64_t count) noexcept {
    if (count > bytes_.size() - at_) {
      fail();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += taken.size();
    return taken;
  }
  void skip(std::uint64_t count) noexcept {
    if (count > bytes_.size() - at_) return fail();
    at_ += count;
  }
  /// The bytes before the next NUL, which is skipped.
  std::string_view c_string() noexcept {
    const std::string_view rest = bytes_.substr(at_);
    const std::size_t nul = rest.find('\0');
    if (nul == std::string_view::npos) {
      fail();
      return {};
    }
    at_ += nul + 1;
    return rest.substr(0, nul);
  }
  /// The same, for texts that are short.
  void skip_c_string() noexcept {
    while (at_ < bytes_.size() && bytes_[at_] != 0) ++at_;
    skip(1);
  }
  /// The length that begins a unit, and whether it is one of 64 bits.
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

  void fail() noexcept {
    ok_ = false;
    at_ = bytes_.size();
  }
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return at_ == bytes_.size(); }
  std::uint64_t position() const noexcept { return at_; }
  std::string_view rest() const noexcept { return bytes_.substr(at_); }
  std::uint64_t left() const noexcept { return bytes_.size() - at_; }

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
  template <class T>
  T number() noexcept {
    T value = 0;
    if (bytes_.size() - at_ < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string_view bytes_;
  std::uint64_t at_ = 0;
  bool swapped_;
  bool ok_ = true;
};

}  // namespace perfmap
