// SPDX-License-Identifier: MIT
#include "elf/symbol_ranges.hpp"

#include <random>

#include "support/catch.hpp"

namespace perfmap::symbol_ranges_test {
namespace {

std::uint32_t owner_by_scan(const std::vector<SymbolRanges::RangeOwner>& owners,
                            std::uint64_t address) {
  std::uint32_t best = SymbolRanges::kNone;
  for (const SymbolRanges::RangeOwner& owner : owners) {
    const bool inside = owner.range.begin <= address && address < owner.range.end;
    if (inside && (best == SymbolRanges::kNone || owner.number > best)) best = owner.number;
  }
  return best;
}

}  // namespace

TEST_CASE("overlapping ranges give the same owner as a scan", "[lines]") {
  std::mt19937 random(GENERATE(range(1U, 40U)));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::vector<SymbolRanges::RangeOwner> owners;
  for (std::uint32_t number = 0; number < 30; ++number) {
    const std::uint64_t begin = below(100);
    owners.push_back({{begin, begin + 1 + below(1 + below(60))}, number % 20});
  }
  const SymbolRanges ranges(owners);
  for (std::uint64_t address = 0; address < 200; ++address) {
    CAPTURE(address);
    CHECK(ranges.find(address) == owner_by_scan(owners, address));
  }
}

TEST_CASE("no ranges give no owner, and a range may end at the last address", "[lines]") {
  CHECK(SymbolRanges().find(7) == SymbolRanges::kNone);
  CHECK(SymbolRanges(std::vector<SymbolRanges::RangeOwner>{}).find(7) == SymbolRanges::kNone);
  const SymbolRanges last({{{UINT64_MAX - 2, UINT64_MAX}, 3}});
  CHECK(last.find(UINT64_MAX - 1) == 3);
  CHECK(last.find(UINT64_MAX - 3) == SymbolRanges::kNone);
}

}  // namespace perfmap::symbol_ranges_test
