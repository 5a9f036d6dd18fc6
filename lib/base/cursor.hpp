// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace perfmap {

/// Reads the fields of a binary record in either byte order, never past the given bytes. A field
/// that does not fit is 0 or empty, and so is every later field: check ok() once, at the end.
/// Alignment does not matter. Borrows the bytes.
class Cursor {
 public:
  constexpr Cursor(std::string_view bytes, std::endian order) noexcept
      : bytes_(bytes), swapped_(order != std::endian::native) {}

  std::uint8_t u8() noexcept { return number<std::uint8_t>(); }
  std::uint16_t u16() noexcept {
    const auto value = number<std::uint16_t>();
    return swapped_ ? __builtin_bswap16(value) : value;
  }
  std::uint32_t u32() noexcept {
    const auto value = number<std::uint32_t>();
    return swapped_ ? __builtin_bswap32(value) : value;
  }
  std::int32_t i32() noexcept { return static_cast<std::int32_t>(u32()); }
  std::uint64_t u64() noexcept {
    const auto value = number<std::uint64_t>();
    return swapped_ ? __builtin_bswap64(value) : value;
  }
  /// The next `count` bytes.
  std::string_view bytes(std::uint64_t count) noexcept {
    if (!has(count)) return {};
    const std::string_view taken(bytes_.data() + at_, count);
    at_ += taken.size();
    return taken;
  }
  void skip(std::uint64_t count) noexcept {
    if (has(count)) at_ += count;
  }
  /// The bytes up to the next NUL, which is skipped.
  std::string_view c_string() noexcept {
    const std::string_view rest = this->rest();
    const std::size_t nul = rest.find('\0');
    if (!has(nul == std::string_view::npos ? UINT64_MAX : nul + 1)) return {};
    at_ += nul + 1;
    return {rest.data(), nul};
  }

  /// From now on all fields are 0 or empty.
  void fail() noexcept {
    ok_ = false;
    at_ = bytes_.size();
  }
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return at_ == bytes_.size(); }
  /// Bytes read so far; all of them after a failure.
  std::size_t position() const noexcept { return at_; }
  std::string_view rest() const noexcept { return {bytes_.data() + at_, bytes_.size() - at_}; }
  std::uint64_t left() const noexcept { return bytes_.size() - at_; }

 protected:
  bool has(std::uint64_t count) noexcept {
    if (count <= bytes_.size() - at_) return true;
    fail();
    return false;
  }
  template <class T>
  T number() noexcept {
    T value = 0;
    if (!has(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool swapped_;
  bool ok_ = true;
};

}  // namespace perfmap
