#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace perfmap {

/// SHA-1, which linkers make build-ids with. For telling contents apart, not for trust.
/// Source: FIPS 180-4.
class Sha1 {
 public:
  static constexpr std::size_t kSize = 20;

  void update(std::string_view bytes) noexcept;
  /// Once, at the end.
  std::array<char, kSize> digest() noexcept;

 private:
  void block(const char* bytes) noexcept;

  std::array<std::uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                         0xc3d2e1f0};
  std::array<char, 64> rest_{};
  std::uint64_t size_ = 0;
};

}  // namespace perfmap
