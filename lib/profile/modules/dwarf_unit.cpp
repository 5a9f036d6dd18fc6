#include "modules/dwarf_unit.hpp"

#include <dwarf.h>

namespace perfmap {
namespace {

void read_version_5(DwarfCursor& cursor, DwarfUnit& unit) {
  unit.type = cursor.u8();
  unit.address_size = cursor.u8();
  unit.abbreviations = cursor.sized(unit.offset_size);
  if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) {
    unit.split_id = cursor.u64();
  } else if (unit.type == DW_UT_type || unit.type == DW_UT_split_type) {
    cursor.u64();
    cursor.sized(unit.offset_size);
  }
}

}  // namespace

DwarfUnit read_unit_header(DwarfCursor& cursor) {
  DwarfUnit unit;
  unit.offset = cursor.position();
  const DwarfCursor::Length length = cursor.unit_length();
  if (length.bytes > cursor.left()) cursor.fail();
  unit.end = cursor.position() + length.bytes;
  unit.offset_size = length.offset_size;
  DwarfCursor header = cursor;
  cursor.skip(length.bytes);
  unit.version = header.u16();
  if (unit.version >= 5) {
    read_version_5(header, unit);
  } else {
    unit.type = DW_UT_compile;
    unit.abbreviations = header.sized(unit.offset_size);
    unit.address_size = header.u8();
  }
  const bool known =
      unit.version >= 2 && unit.version <= 5 && (unit.address_size == 4 || unit.address_size == 8);
  if (header.ok() && known && header.position() <= unit.end) unit.first_die = header.position();
  return unit;
}

}  // namespace perfmap
