// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// Marks the symbols that libperfmap.so exports. All others are hidden.
#define PERFMAP_API __attribute__((visibility("default")))

namespace perfmap {

/// An absolute virtual address in the profiled process; never a file offset.
using Address = std::uint64_t;

/// The half-open range [begin, begin + size); size is in bytes.
/// Invariant: begin + size does not exceed 2^64. Ranges of code come from within_space(): if they
/// include the last byte of the address space, their end() is 0, so compare last() instead. Ranges
/// of mapped memory come from clamped(): their end() is never 0.
struct AddressRange {
  Address begin = 0;
  std::uint64_t size = 0;

  /// Cuts the range so that it ends at 2^64 at the latest.
  static constexpr AddressRange within_space(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t after = UINT64_MAX - begin;  // addresses after `begin`
    return {begin, size == 0 || size - 1 <= after ? size : after + 1};
  }
  /// Cuts the range so that it ends at 2^64 - 1 at the latest.
  static constexpr AddressRange clamped(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t room = UINT64_MAX - begin;
    return {begin, size < room ? size : room};
  }

  constexpr Address end() const noexcept { return begin + size; }
  /// The last address in the range. An empty range stands for its first byte.
  constexpr Address last() const noexcept { return begin + (size == 0 ? 0 : size - 1); }

  /// One comparison, no overflow: an address below `begin` wraps round to a huge distance.
  constexpr bool contains(Address address) const noexcept { return address - begin < size; }

  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace perfmap
