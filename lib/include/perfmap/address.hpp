#pragma once

#include <cstdint>

namespace perfmap {

/// An absolute virtual address in the profiled process; never a file offset.
using Address = std::uint64_t;

/// The half-open range [begin, begin + size); size is in bytes.
/// Invariant: begin + size does not exceed 2^64 - 1. Readers make ranges with clamped().
struct AddressRange {
  Address begin = 0;
  std::uint64_t size = 0;

  static constexpr AddressRange clamped(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t room = UINT64_MAX - begin;
    return {begin, size < room ? size : room};
  }

  constexpr Address end() const noexcept { return begin + size; }

  /// One comparison, no overflow: an address below `begin` wraps round to a huge distance.
  constexpr bool contains(Address address) const noexcept { return address - begin < size; }

  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace perfmap
