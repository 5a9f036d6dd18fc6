#pragma once

#include <cstdint>

namespace perfmap {

/// An absolute virtual address in the profiled process; never a file offset.
using Address = std::uint64_t;

/// The half-open range [begin, begin + size); size is in bytes.
/// Invariant: begin + size does not exceed 2^64. Readers of code make ranges with within_space(),
/// whose end() is 0 where they have the last byte of the address space: compare last() instead.
/// Readers of mapped memory make them with clamped(), whose end() is never 0.
struct AddressRange {
  Address begin = 0;
  std::uint64_t size = 0;

  /// Cut so that it ends at 2^64 at the latest.
  static constexpr AddressRange within_space(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t behind = UINT64_MAX - begin;  // addresses after `begin`
    return {begin, size == 0 || size - 1 <= behind ? size : behind + 1};
  }
  /// Cut so that it ends at 2^64 - 1 at the latest.
  static constexpr AddressRange clamped(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t room = UINT64_MAX - begin;
    return {begin, size < room ? size : room};
  }

  constexpr Address end() const noexcept { return begin + size; }
  /// The last address in it; of an empty range, which stands for its first byte, that one.
  constexpr Address last() const noexcept { return begin + (size == 0 ? 0 : size - 1); }

  /// One comparison, no overflow: an address below `begin` wraps round to a huge distance.
  constexpr bool contains(Address address) const noexcept { return address - begin < size; }

  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace perfmap
