// SPDX-License-Identifier: MIT
#include "elf/symbol_ranges.hpp"

#include <algorithm>

namespace perfmap {
namespace {

bool is_lower(const SymbolRanges::RangeOwner& a, const SymbolRanges::RangeOwner& b) {
  return a.number < b.number;
}

}  // namespace

SymbolRanges::SymbolRanges(std::vector<RangeOwner> claims) {
  std::ranges::sort(claims, {}, [](const RangeOwner& claim) { return claim.range.begin; });
  std::vector<RangeOwner> open;  // a max-heap by number
  std::uint64_t at = 0;
  const auto advance = [&](std::uint64_t to) {
    while (at < to) {
      while (!open.empty() && open.front().range.end <= at) {
        std::ranges::pop_heap(open, is_lower);
        open.pop_back();
      }
      append(at, open.empty() ? kNone : open.front().number);
      at = open.empty() ? to : std::min(to, open.front().range.end);
    }
  };
  for (const RangeOwner& claim : claims) {
    advance(claim.range.begin);
    open.push_back(claim);
    std::ranges::push_heap(open, is_lower);
  }
  advance(UINT64_MAX);
  begins_.shrink_to_fit();
  numbers_.shrink_to_fit();
}

void SymbolRanges::append(std::uint64_t begin, std::uint32_t number) {
  if (!numbers_.empty() && numbers_.back() == number) return;
  begins_.push_back(begin);
  numbers_.push_back(number);
}

std::uint32_t SymbolRanges::find(std::uint64_t address) const noexcept {
  const auto next = std::ranges::upper_bound(begins_, address);
  if (next == begins_.begin()) return kNone;
  return numbers_[static_cast<std::size_t>(next - begins_.begin()) - 1];
}

}  // namespace perfmap
