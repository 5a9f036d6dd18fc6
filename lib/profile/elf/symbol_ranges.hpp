// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace perfmap {

/// A range of code: [begin, end).
struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Which of several overlapping ranges owns an address: the one with the highest number. Binary
/// search over disjoint segments. Built in O(n log n) for n ranges with any overlaps.
class SymbolRanges {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct RangeOwner {
    CodeRange range;
    std::uint32_t number = 0;
  };

  SymbolRanges() = default;
  explicit SymbolRanges(std::vector<RangeOwner> claims);

  std::uint32_t find(std::uint64_t address) const noexcept;
  std::size_t bytes() const noexcept { return begins_.size() * 12; }

 private:
  void append(std::uint64_t begin, std::uint32_t number);

  std::vector<std::uint64_t> begins_;
  std::vector<std::uint32_t> numbers_;  // owner of the segment that begins there, up to the next
};

}  // namespace perfmap
