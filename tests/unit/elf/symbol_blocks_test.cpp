// SPDX-License-Identifier: MIT
#include "elf/symbol_table.hpp"
#include "support/catch.hpp"

namespace perfmap::symbol_blocks_test {

TEST_CASE("a few symbols far apart, in code of up to 4 GiB, are found", "[symbols]") {
  using namespace std::string_view_literals;
  constexpr std::uint64_t kMax = UINT32_MAX - 1;
  constexpr Address kBase = 0x400000;
  std::vector<FoundSymbol> found(3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].begin = kBase + i * (kMax / 3) + 64;
    found[i].size = 16;
    found[i].name = static_cast<std::uint32_t>(2 * i);
  }
  for (const std::uint64_t size : {kMax, kMax / 2 + 1, kMax / 2, std::uint64_t{0x1000}}) {
    CAPTURE(size);
    const auto blocks = SymbolBlocks::of(found, {"a\0b\0c\0"sv}, CodeAreas({{kBase, size}}));
    REQUIRE(blocks);
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::uint64_t steps = 0;
      const auto symbol = blocks->find(found[i].begin + 15, steps);
      REQUIRE(symbol.has_value() == (found[i].begin + 15 < kBase + size));
      if (symbol) CHECK(symbol->name == std::string(1, static_cast<char>('a' + i)));
    }
  }
  CHECK_FALSE(SymbolBlocks::of(found, {"a\0b\0c\0"sv}, CodeAreas({{kBase, kMax + 1}})));
}

}  // namespace perfmap::symbol_blocks_test
