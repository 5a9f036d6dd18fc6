#pragma once

#include <cstdint>

#include "modules/dwarf_cursor.hpp"

namespace perfmap {

/// The header of a unit (DWARF 5, 7.5.1). Offsets are into .debug_info.
struct DwarfUnit {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t first_die = 0;
  std::uint64_t abbreviations = 0;  ///< offset into .debug_abbrev
  std::uint64_t split_id = 0;       ///< DWARF 5: of a skeleton and its split unit
  std::uint16_t version = 0;
  std::uint8_t type = 0;  ///< DW_UT_…; DW_UT_compile before DWARF 5
  std::uint8_t address_size = 8;
  std::uint8_t offset_size = 4;

  bool is_readable() const noexcept { return first_die != 0; }
};

/// Reads the header at the cursor and moves behind the unit. A unit of a version that is not known
/// is skipped and not readable; the cursor fails where not even its length makes sense.
DwarfUnit read_unit_header(DwarfCursor& cursor);

}  // namespace perfmap
