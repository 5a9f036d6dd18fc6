#include "elf/symbol_ranges.hpp"

#include <random>

#include "support/catch.hpp"

namespace perfmap {
namespace {

std::uint32_t by_scan(const std::vector<SymbolRanges::RangeOwner>& claims, std::uint64_t address) {
  std::uint32_t best = SymbolRanges::kNone;
  for (const SymbolRanges::RangeOwner& claim : claims) {
    const bool inside = claim.range.begin <= address && address < claim.range.end;
    if (inside && (best == SymbolRanges::kNone || claim.number > best)) best = claim.number;
  }
  return best;
}

}  // namespace

TEST_CASE("a partition answers as a scan of all claims does", "[lines]") {
  std::mt19937 random(GENERATE(range(1U, 40U)));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::vector<SymbolRanges::RangeOwner> claims;
  for (std::uint32_t number = 0; number < 30; ++number) {
    const std::uint64_t begin = below(100);
    claims.push_back({{begin, begin + 1 + below(1 + below(60))}, number % 20});
  }
  const SymbolRanges partition(claims);
  for (std::uint64_t address = 0; address < 200; ++address) {
    CAPTURE(address);
    CHECK(partition.find(address) == by_scan(claims, address));
  }
}

TEST_CASE("a partition without claims, and one up to the last address, answer", "[lines]") {
  CHECK(SymbolRanges().find(7) == SymbolRanges::kNone);
  CHECK(SymbolRanges(std::vector<SymbolRanges::RangeOwner>{}).find(7) == SymbolRanges::kNone);
  const SymbolRanges last({{{UINT64_MAX - 2, UINT64_MAX}, 3}});
  CHECK(last.find(UINT64_MAX - 1) == 3);
  CHECK(last.find(UINT64_MAX - 3) == SymbolRanges::kNone);
}

}  // namespace perfmap
