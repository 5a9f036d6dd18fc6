// SPDX-License-Identifier: MIT
#include "dwarf/units.hpp"

#include <algorithm>
#include <dwarf.h>
#include <optional>

#include "dwarf/dwarf_file.hpp"

namespace perfmap {

namespace {

/// Adds the entries of one list.
class RangeReader {
 public:
  RangeReader(const UnitContext& context, std::uint64_t& budget, std::vector<CodeRange>& out)
      : context_(context), budget_(budget), out_(out), base_(context.base_address) {}

  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin < end && context_.skeleton_file->is_code(begin)) out_.push_back({begin, end});
  }
  /// .debug_ranges (DWARF 4, 2.17.3).
  void read_pairs(std::uint64_t offset) {
    const unsigned size = context_.unit->address_size;
    const std::uint64_t select = size == 4 ? UINT32_MAX : UINT64_MAX;
    DwarfCursor cursor(context_.skeleton_file->sections().ranges, context_.skeleton_file->order(),
                       offset);
    while (spend()) {
      const std::uint64_t begin = cursor.sized(size);
      const std::uint64_t end = cursor.sized(size);
      if (!cursor.ok() || (begin == 0 && end == 0)) return;
      if (begin == select) {
        base_ = end;
      } else {
        add(base_ + begin, base_ + end);
      }
    }
  }
  /// .debug_rnglists (DWARF 5, 2.17.3).
  void read_list(std::uint64_t offset) {
    DwarfCursor cursor(context_.file->sections().range_lists, context_.file->order(), offset);
    while (spend() && read_entry(cursor)) {
    }
  }

 private:
  bool spend() noexcept { return budget_ != 0 && budget_-- != 0; }
  std::uint64_t indexed(DwarfCursor& cursor) {
    const auto address = indexed_address(context_, cursor.uleb());
    if (!address) cursor.fail();
    return address.value_or(0);
  }
  bool read_entry(DwarfCursor& cursor) {
    const unsigned size = context_.unit->address_size;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    switch (cursor.u8()) {
      case DW_RLE_base_addressx: base_ = indexed(cursor); return cursor.ok();
      case DW_RLE_base_address: base_ = cursor.sized(size); return cursor.ok();
      case DW_RLE_startx_endx:
        begin = indexed(cursor);
        end = indexed(cursor);
        break;
      case DW_RLE_startx_length:
        begin = indexed(cursor);
        end = begin + cursor.uleb();
        break;
      case DW_RLE_offset_pair:
        begin = base_ + cursor.uleb();
        end = base_ + cursor.uleb();
        break;
      case DW_RLE_start_end:
        begin = cursor.sized(size);
        end = cursor.sized(size);
        break;
      case DW_RLE_start_length:
        begin = cursor.sized(size);
        end = begin + cursor.uleb();
        break;
      default: return false;  // the end, or an entry of unknown size
    }
    if (cursor.ok()) add(begin, end);
    return cursor.ok();
  }

  const UnitContext& context_;
  std::uint64_t& budget_;
  std::vector<CodeRange>& out_;
  std::uint64_t base_;
};

/// The offset of the list with this index; the table of offsets is at the base.
std::optional<std::uint64_t> list_offset(const UnitContext& context, std::uint64_t index) {
  const std::string_view section = context.file->sections().range_lists;
  const std::uint64_t base = context.range_lists_base;
  const unsigned size = context.unit->offset_size;
  if (base > section.size() || index >= (section.size() - base) / size) return std::nullopt;
  DwarfCursor cursor(section, context.file->order(), base + index * size);
  return base + cursor.sized(size);
}

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

/// Resolves values that need the bases, which may come later in the DIE.
void look_up(RootValues& values) {
  UnitRoot& root = values.root;
  root.compile_directory = text_of(root.context, values.directory);
  root.split_name = text_of(root.context, values.split_name);
  root.context.base_address = address_of(root.context, root.place.low).value_or(0);
}

}  // namespace

void CodePlace::take(std::uint16_t name, const DwarfValue& value) noexcept {
  if (name == DW_AT_low_pc) low = value;
  if (name == DW_AT_high_pc) high = value;
  if (name == DW_AT_ranges) ranges = value;
}

CodePlace read_place(DwarfCursor& cursor, const DwarfUnit& unit, const AbbreviationTable& table,
                     const Abbreviation& abbreviation) {
  CodePlace place;
  if (!abbreviation.is_fixed) {
    for (const AttributeForm& form : table.attributes(abbreviation)) {
      const DwarfValue value = read_value(cursor, unit, form);
      if (cursor.ok()) place.take(form.name, value);
    }
    return place;
  }
  for (const AttributeForm& form : table.places(abbreviation)) {
    DwarfCursor at = cursor;
    at.skip(form.offset);
    const DwarfValue value = read_value(at, unit, form);
    if (at.ok()) place.take(form.name, value);
  }
  cursor.skip(abbreviation.size);
  return place;
}

void append_ranges(const UnitContext& context, const CodePlace& place, std::uint64_t& budget,
                   std::vector<CodeRange>& out) {
  RangeReader reader(context, budget, out);
  if (place.ranges.kind == ValueKind::list_index) {
    if (const auto at = list_offset(context, place.ranges.number)) reader.read_list(*at);
  } else if (place.ranges) {  // a section offset; before DWARF 4, a constant of 4 or 8 bytes
    if (context.unit->version >= 5) return reader.read_list(place.ranges.number);
    reader.read_pairs(context.ranges_base + place.ranges.number);
  } else if (const auto low = address_of(context, place.low)) {
    const auto high = address_of(context, place.high);
    reader.add(*low, high ? *high : *low + place.high.number);
  }
}

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
  // The tables of a split unit have no base: they begin after the single header of their section.
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
