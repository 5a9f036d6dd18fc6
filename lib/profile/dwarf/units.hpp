#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/dies.hpp"
#include "dwarf/dwarf_file.hpp"
#include "elf/symbol_ranges.hpp"

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

/// What the first DIE of a unit says. Borrows from the file.
struct UnitRoot {
  UnitContext context;
  std::uint16_t tag = 0;  ///< 0: unreadable
  CodePlace place;
  std::optional<std::uint64_t> line_program;
  std::string_view compile_directory;
  std::string_view split_name;  ///< a skeleton's: the file that has the rest
  std::uint64_t split_id = 0;
  std::uint64_t split_ranges_base = 0;
};

UnitRoot read_unit_root(const DwarfFile& file, const DwarfUnit& unit,
                        const AbbreviationTable& abbreviations);

/// The same, reading no more of the unit's abbreviations than up to that of its root. Takes the
/// bytes read from `budget`: any number of units may share one long table.
std::optional<UnitRoot> peek_root(const DwarfFile& file, const DwarfUnit& unit,
                                  std::uint64_t& budget);

/// The split unit's root, which takes from its skeleton what only that knows.
UnitRoot read_split_root(const DwarfFile& file, const DwarfUnit& unit,
                         const AbbreviationTable& abbreviations, const UnitRoot& skeleton);

/// Calls `take(name, value)` for each attribute of the DIE at the cursor, behind its code.
template <class Take>
void for_each_attribute(DwarfCursor& cursor, const DwarfUnit& unit, const AbbreviationTable& table,
                        const Abbreviation& abbreviation, const Take& take) {
  for (const AttributeForm& form : table.attributes(abbreviation)) {
    const DwarfValue value = read_value(cursor, unit, form);
    if (!cursor.ok()) return;
    take(form.name, value);
  }
}

}  // namespace perfmap
