// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/jitdump.hpp"

namespace perfmap {

/// The machine of an ELF file.
struct Target {
  std::endian order = std::endian::native;
  bool is_64 = true;
  std::uint16_t machine = 0;  ///< EM_…
  std::uint32_t flags = 0;    ///< e_flags

  std::uint8_t address_size() const noexcept { return is_64 ? 8 : 4; }
  /// The last valid address.
  std::uint64_t last_address() const noexcept { return is_64 ? UINT64_MAX : UINT32_MAX; }
};

/// The machine of a dump; our own if the dump does not state it.
Target target_of(const std::optional<JitdumpHeader>& header) noexcept;
/// The same if it is known to be `machine`.
Target target_of(const std::optional<JitdumpHeader>& header, std::uint16_t machine) noexcept;

/// Builds bytes for a target: used for DWARF and frames.
class TargetBytes {
 public:
  explicit TargetBytes(const Target& target) : target_(target) {}

  TargetBytes& u8(std::uint64_t value) { return number(value, 1); }
  TargetBytes& u16(std::uint64_t value) { return number(value, 2); }
  TargetBytes& u32(std::uint64_t value) { return number(value, 4); }
  TargetBytes& address(std::uint64_t value) { return number(value, target_.address_size()); }
  TargetBytes& uleb(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  TargetBytes& sleb(std::int64_t value) {
    for (; value < -0x40 || value >= 0x40; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value & 0x7f);
    return *this;
  }
  TargetBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  TargetBytes& c_string(std::string_view text) { return raw(text).u8(0); }
  /// Zeros up to the next multiple of `alignment`.
  TargetBytes& align(std::size_t alignment) {
    bytes_.append((alignment - bytes_.size() % alignment) % alignment, '\0');
    return *this;
  }
  /// Overwrites the bytes at `at`.
  void patch_u32(std::size_t at, std::uint64_t value) { patch(at, value, 4); }
  void patch_address(std::size_t at, std::uint64_t value) {
    patch(at, value, target_.address_size());
  }

  std::size_t size() const noexcept { return bytes_.size(); }
  std::string_view view() const noexcept { return bytes_; }
  const Target& target() const noexcept { return target_; }

 private:
  char byte(std::uint64_t value, unsigned i, unsigned size) const noexcept {
    const unsigned place = target_.order == std::endian::little ? i : size - 1 - i;
    return static_cast<char>(value >> (8 * place));
  }
  void patch(std::size_t at, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes_[at + i] = byte(value, i, size);
  }
  TargetBytes& number(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes_ += byte(value, i, size);
    return *this;
  }

  Target target_;
  std::string bytes_;
};

}  // namespace perfmap
