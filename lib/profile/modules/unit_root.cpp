#include "modules/unit_root.hpp"

#include <algorithm>
#include <dwarf.h>

namespace perfmap {
namespace {

struct RootValues {
  UnitRoot root;
  DwarfValue low, directory, split_name;
  std::optional<std::uint64_t> string_offsets, addresses, range_lists;
};

void take(RootValues& values, std::uint16_t name, const DwarfValue& value) {
  values.root.place.take(name, value);
  switch (name) {
    case DW_AT_stmt_list: values.root.line_program = value.number; break;
    case DW_AT_comp_dir: values.directory = value; break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name: values.split_name = value; break;
    case DW_AT_GNU_dwo_id: values.root.split_id = value.number; break;
    case DW_AT_str_offsets_base: values.string_offsets = value.number; break;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base: values.addresses = value.number; break;
    case DW_AT_rnglists_base: values.range_lists = value.number; break;
    case DW_AT_GNU_ranges_base: values.root.split_ranges_base = value.number; break;
    default: break;
  }
}

RootValues read_values(const DwarfFile& file, const DwarfUnit& unit,
                       const AbbreviationTable& abbreviations) {
  RootValues values;
  values.root.context.file = values.root.context.skeleton_file = &file;
  values.root.context.unit = &unit;
  values.root.split_id = unit.split_id;
  DwarfCursor cursor(file.sections().info.substr(0, unit.end), file.order(), unit.first_die);
  const Abbreviation* const found = abbreviations.find(cursor.uleb());
  if (found == nullptr) return values;
  for_each_attribute(
      cursor, unit, abbreviations, *found,
      [&](std::uint16_t name, const DwarfValue& value) { take(values, name, value); });
  if (cursor.ok()) values.root.tag = found->tag;
  return values;
}

/// What needs the bases, which may stand behind it in the DIE.
void look_up(RootValues& values) {
  UnitRoot& root = values.root;
  root.compile_directory = text_of(root.context, values.directory);
  root.split_name = text_of(root.context, values.split_name);
  root.context.base_address = address_of(root.context, root.place.low).value_or(0);
}

}  // namespace

UnitRoot read_unit_root(const DwarfFile& file, const DwarfUnit& unit,
                        const AbbreviationTable& abbreviations) {
  RootValues values = read_values(file, unit, abbreviations);
  values.root.context.string_offsets_base = values.string_offsets.value_or(0);
  values.root.context.addresses_base = values.addresses.value_or(0);
  values.root.context.range_lists_base = values.range_lists.value_or(0);
  look_up(values);
  return values.root;
}

UnitRoot read_split_root(const DwarfFile& file, const DwarfUnit& unit,
                         const AbbreviationTable& abbreviations, const UnitRoot& skeleton) {
  RootValues values = read_values(file, unit, abbreviations);
  UnitContext& context = values.root.context;
  context.skeleton_file = skeleton.context.file;
  context.addresses_base = skeleton.context.addresses_base;
  // A split unit's tables have no base: they begin behind the one header of their section.
  const bool has_headers = unit.version >= 5;
  context.string_offsets_base = !has_headers ? 0U : unit.offset_size == 8 ? 16U : 8U;
  context.range_lists_base = unit.offset_size == 8 ? 20 : 12;
  context.ranges_base = skeleton.split_ranges_base;
  look_up(values);
  context.base_address = skeleton.context.base_address;
  return values.root;
}

std::optional<UnitRoot> peek_root(const DwarfFile& file, const DwarfUnit& unit,
                                  std::uint64_t& budget) {
  DwarfCursor cursor(file.sections().info, file.order(), unit.first_die);
  const std::uint64_t code = cursor.uleb();
  if (code == 0 || budget == 0) return std::nullopt;
  const AbbreviationTable table(file.sections().abbreviations, file.order(), unit, code);
  budget -= std::min(budget, table.bytes_read());
  return read_unit_root(file, unit, table);
}

}  // namespace perfmap
