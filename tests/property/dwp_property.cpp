// SPDX-License-Identifier: MIT
// Random packages of split units: each unit has its own parts of the sections, and an unused id is
// not found.

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "dwarf/dwarf_file.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"
#include "support/package_oracle.hpp"

namespace perfmap::dwp_property {
namespace {

using test::SectionBytes;

struct Made {
  std::string index;
  std::string info;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> units;  // parts of `info`, by id
};

/// A unit of DWARF 5 with only its header and a few bytes.
std::string unit_of(std::uint64_t id, std::size_t rest) {
  return SectionBytes()
      .u16(5)
      .u8(5)
      .u8(8)
      .u32(0)
      .u64(id)
      .raw(std::string(rest, '\0'))
      .with_length();
}

/// Many ids share a slot; the table has 1 to 4 times as many slots as needed.
Made random_package(std::mt19937_64& random) {
  Made made;
  const std::size_t count = 1 + random() % 20;
  while (made.units.size() < count) {
    const std::uint64_t id = random() & (random() % 2 == 0 ? 0x7'0000'0003 : UINT64_MAX);
    if (id == 0 || made.units.contains(id)) continue;
    const std::string unit = unit_of(id, random() % 9);
    made.units[id] = {made.info.size(), unit.size()};
    made.info += unit;
  }
  const std::uint64_t slots = std::bit_ceil(count) << random() % 3;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> table(slots);
  std::uint32_t row = 0;
  for (const auto& [id, part] : made.units) {
    std::uint64_t slot = id & (slots - 1);
    while (table[slot].second != 0) slot = (slot + ((id >> 32 & (slots - 1)) | 1)) & (slots - 1);
    table[slot] = {id, ++row};
  }
  SectionBytes index;
  index.u16(5).u16(0).u32(2).u32(count).u32(slots);
  for (const auto& [id, number] : table) index.u64(id);
  for (const auto& [id, number] : table) index.u32(number);
  index.u32(3).u32(1);
  for (const auto& [id, part] : made.units) index.u32(0).u32(part.first);
  for (const auto& [id, part] : made.units) index.u32(0).u32(part.second);
  made.index = index.bytes();
  return made;
}

}  // namespace

TEST_CASE("each unit of a package has its own parts, also by a naive reader", "[dwp]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Made made = random_package(random);
    const auto package =
        DwarfPackage::open(Input::from_text(test::elf_with({{".debug_info.dwo", made.info},
                                                            {".debug_abbrev.dwo", "\0"},
                                                            {".debug_cu_index", made.index}}),
                                            "made.dwp"),
                           1 << 20);
    REQUIRE(package);
    const test::PackageOracle oracle(made.index);
    REQUIRE(oracle.is_whole());
    for (const auto& [id, part] : made.units) {
      const auto unit = package->find(id);
      REQUIRE(unit);
      CHECK(unit->sections().info == std::string_view(made.info).substr(part.first, part.second));
      const auto parts = oracle.find(id);
      REQUIRE((parts && (*parts)[1]));
      CHECK(std::pair((*parts)[1]->offset, (*parts)[1]->size) == part);
      const std::uint64_t other = id ^ std::uint64_t{1} << random() % 64;
      CHECK((package->find(other) != nullptr) == made.units.contains(other));
      CHECK(oracle.find(other).has_value() == made.units.contains(other));
    }
  }
}

}  // namespace perfmap::dwp_property
