// SPDX-License-Identifier: MIT
#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include "elf/symbol_table.hpp"
#include "support/catch.hpp"

namespace perfmap::symbol_table_property {
namespace {

constexpr std::uint64_t kSpan = 96;

struct Case {
  std::vector<AddressRange> areas;
  std::vector<FoundSymbol> symbols;
  std::string names;
};

/// A small space, so that overlaps, nesting and equal starts and ends are frequent.
Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const Address base = seed % 3 == 0 ? UINT64_MAX - kSpan - 1 : seed % 3 == 1 ? 0 : 0x400000;
  Case c;
  for (unsigned i = 1 + below(3); i > 0; --i) {
    c.areas.push_back(AddressRange::clamped(base + below(kSpan - 30), 1 + below(60)));
  }
  for (unsigned i = 0, n = below(14); i < n; ++i) {
    FoundSymbol symbol;
    symbol.begin = base + below(kSpan);
    symbol.size = below(3) == 0 ? 0 : below(8) == 0 ? UINT64_MAX - below(9) : below(40);
    symbol.name = static_cast<std::uint32_t>(c.names.size());
    symbol.order = i;
    symbol.binding = static_cast<std::uint8_t>(below(3));
    symbol.underscores = static_cast<std::uint8_t>(below(2));
    symbol.kind = static_cast<SymbolKind>(below(4));
    c.symbols.push_back(symbol);
    c.names += std::string(symbol.underscores, '_') + "f" + std::to_string(i) + '\0';
  }
  return c;
}

/// Adds assembler marks, which are not symbols.
std::vector<FoundSymbol> with_marks(const Case& c, unsigned seed, std::string& names) {
  std::mt19937 random(seed + 1);
  std::vector<FoundSymbol> mixed;
  names = c.names;
  for (const FoundSymbol& symbol : c.symbols) {
    FoundSymbol mark = symbol;
    mark.name = static_cast<std::uint32_t>(names.size());
    mark.begin += random() % 8;
    mark.kind = SymbolKind::label;
    names += random() % 2 == 0 ? std::string("$x\0", 3) : std::string(".L7\0", 4);
    if (random() % 3 == 0) mixed.push_back(mark);
    mixed.push_back(symbol);
  }
  return mixed;
}

bool in_area(const Case& c, Address address) {
  for (const AddressRange& area : c.areas) {
    if (area.contains(address)) return true;
  }
  return false;
}

/// The end of the code around an address: areas that overlap are one, areas that touch are not.
Address code_end(const Case& c, Address address) {
  Address end = address + 1;
  for (bool grows = true; grows;) {
    grows = false;
    for (const AddressRange& area : c.areas) {
      if (!area.contains(end - 1) || area.end() <= end) continue;
      end = area.end();
      grows = true;
    }
  }
  return end;
}

/// The end of a symbol: its size, but not beyond the code in which it begins.
Address end_of(const Case& c, const FoundSymbol& s) {
  if (!in_area(c, s.begin)) return s.begin;
  return s.begin + std::min(s.size, code_end(c, s.begin) - s.begin);
}

/// The documented rule, step by step.
const FoundSymbol* naive_owner(const Case& c, Address address) {
  const auto merit = [](const FoundSymbol* s) {
    return std::tuple(~s->begin, s->binding, s->kind, s->underscores, s->order);
  };
  const FoundSymbol* best = nullptr;
  for (const FoundSymbol& s : c.symbols) {
    const bool covers = s.size != 0 && s.begin <= address && address < end_of(c, s);
    if (covers && (best == nullptr || merit(&s) < merit(best))) best = &s;
  }
  if (best != nullptr) return best;
  // Symbols without size: those that begin last before the address, unless one of them has a size.
  for (const FoundSymbol& s : c.symbols) {
    if (!in_area(c, s.begin) || s.begin > address) continue;
    const auto key = [&](const FoundSymbol* x) {
      return std::tuple(~x->begin, x->size == 0, merit(x));
    };
    if (best == nullptr || key(&s) < key(best)) best = &s;
  }
  if (best == nullptr || best->size != 0) return nullptr;
  for (const FoundSymbol& s : c.symbols) {
    if (s.size != 0 && s.begin <= best->begin && best->begin < end_of(c, s)) return nullptr;
  }
  return address < code_end(c, best->begin) ? best : nullptr;
}

}  // namespace

TEST_CASE("the symbol table gives the same results as a scan", "[symbols][property]") {
  const auto seed = GENERATE(range(0u, 3000u));
  CAPTURE(seed);
  const Case c = random_case(seed);
  const SymbolTable table(c.symbols, {c.names}, CodeAreas(c.areas));
  const Address base = seed % 3 == 0 ? UINT64_MAX - kSpan - 1 : seed % 3 == 1 ? 0 : 0x400000;
  for (Address offset = 0; offset < kSpan; ++offset) {
    CAPTURE(offset);
    const auto found = table.find(base + offset);
    const FoundSymbol* const expected = naive_owner(c, base + offset);
    REQUIRE(found.has_value() == (expected != nullptr));
    if (!found) continue;
    CHECK(found->name == std::string_view(c.names.c_str() + expected->name));
    CHECK(found->range.begin == expected->begin);
    CHECK(found->range.contains(base + offset));
    CHECK(found->kind == expected->kind);
    CHECK(found->id < table.piece_count());
  }
  for (std::size_t i = 1; i < table.piece_count(); ++i) {
    CHECK(table.piece_begin(i - 1) < table.piece_begin(i));
  }
}

TEST_CASE("blocks of symbols give the same results as a scan", "[symbols][property]") {
  const auto seed = GENERATE(range(0u, 3000u));
  CAPTURE(seed);
  const Case c = random_case(seed);
  std::string names;
  const std::vector<FoundSymbol> mixed = with_marks(c, seed, names);
  const auto blocks = SymbolBlocks::of(mixed, {names}, CodeAreas(c.areas));
  REQUIRE(blocks.has_value() == !mixed.empty());
  const Address base = seed % 3 == 0 ? UINT64_MAX - kSpan - 1 : seed % 3 == 1 ? 0 : 0x400000;
  const SymbolTable table(c.symbols, {c.names}, CodeAreas(c.areas));
  std::uint64_t steps = 0;
  for (Address offset = 0; blocks && offset < kSpan; ++offset) {
    CAPTURE(offset);
    const auto found = blocks->find(base + offset, steps);
    const FoundSymbol* const expected = naive_owner(c, base + offset);
    REQUIRE(found.has_value() == (expected != nullptr));
    if (!found) continue;
    CHECK(found->name == std::string_view(c.names.c_str() + expected->name));
    CHECK(found->kind == expected->kind);
    CHECK(found->id < blocks->size());
    CHECK(found->range == table.find(base + offset)->range);
  }
}

TEST_CASE("blocks are not made for symbols too far apart", "[symbols]") {
  FoundSymbol near;
  FoundSymbol far;
  far.begin = std::uint64_t{1} << 40;
  near.size = far.size = 16;
  const CodeAreas areas({{0, 64}, {far.begin, 64}});
  CHECK_FALSE(SymbolBlocks::of({near, far}, {std::string_view("f")}, areas));
  CHECK_FALSE(SymbolBlocks::of({}, {}, areas));
}

}  // namespace perfmap::symbol_table_property
