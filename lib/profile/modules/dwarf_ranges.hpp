#pragma once

#include <cstdint>
#include <vector>

#include "modules/dwarf_abbreviations.hpp"
#include "modules/dwarf_values.hpp"
#include "modules/partition.hpp"

namespace perfmap {

/// The attributes that say where a DIE's code is.
struct CodePlace {
  DwarfValue low, high, ranges;

  void take(std::uint16_t name, const DwarfValue& value) noexcept;
};

/// Of the DIE at the cursor, behind its code; moves behind its attributes.
CodePlace read_place(DwarfCursor& cursor, const DwarfUnit& unit, const AbbreviationTable& table,
                     const Abbreviation& abbreviation);

/// Entries of lists that DIEs of so many bytes may name: a few may have one long list.
constexpr std::uint64_t range_budget(std::uint64_t bytes) noexcept { return 4096 + bytes; }

/// Adds the ranges of a DIE to `out`: those that are not empty and begin where the file has code.
/// Each entry of a list that is looked at takes one from `budget`, and reading ends where that is
/// 0: any number of DIEs may name the same long list.
void append_ranges(const UnitContext& context, const CodePlace& place, std::uint64_t& budget,
                   std::vector<CodeRange>& out);

}  // namespace perfmap
