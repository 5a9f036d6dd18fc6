#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "perfmap/address.hpp"

namespace perfmap {

/// How much of an image may be filling between code.
struct FillingBounds {
  std::uint64_t longest = 0;  ///< no gap that is longer is filled
  std::uint64_t free = 0;     ///< filling that a small dump may have, too
};

/// Which gaps are filled: the shortest first, up to as many bytes as there is code. `ranges` ascend
/// without overlaps; the answer says it of the gap behind each. O(n log n).
inline std::vector<bool> gaps_to_fill(std::span<const AddressRange> ranges,
                                      const FillingBounds& bounds) {
  std::vector<bool> filled(ranges.size(), false);
  if (ranges.empty()) return filled;
  const auto gap = [&](std::uint32_t i) { return ranges[i + 1].begin - ranges[i].end(); };
  std::uint64_t budget = bounds.free;
  for (const AddressRange& range : ranges) budget += range.size;
  std::vector<std::uint32_t> order(ranges.size() - 1);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(gap(a), a) < std::pair(gap(b), b);
  });
  for (const std::uint32_t i : order) {
    if (gap(i) > bounds.longest || gap(i) > budget) break;
    budget -= gap(i);
    filled[i] = true;
  }
  return filled;
}

}  // namespace perfmap
