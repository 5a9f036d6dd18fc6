#pragma once

#include <cstdint>
#include <vector>

#include "modules/dwarf_values.hpp"
#include "modules/partition.hpp"

namespace perfmap {

/// The attributes that say where a DIE's code is.
struct CodePlace {
  DwarfValue low, high, ranges;

  void take(std::uint16_t name, const DwarfValue& value) noexcept;
};

/// Adds the ranges of a DIE to `out`: those that are not empty and begin where the file has code.
/// Each entry of a list that is looked at takes one from `budget`, and reading ends where that is
/// 0: any number of DIEs may name the same long list.
void append_ranges(const UnitContext& context, const CodePlace& place, std::uint64_t& budget,
                   std::vector<CodeRange>& out);

}  // namespace perfmap
