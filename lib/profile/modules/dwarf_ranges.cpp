#include "modules/dwarf_ranges.hpp"

#include <dwarf.h>
#include <optional>

#include "modules/dwarf_file.hpp"

namespace perfmap {
namespace {

/// Takes in the entries of one list.
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
      default: return false;  // the end, or an entry of which not even the size is known
    }
    if (cursor.ok()) add(begin, end);
    return cursor.ok();
  }

  const UnitContext& context_;
  std::uint64_t& budget_;
  std::vector<CodeRange>& out_;
  std::uint64_t base_;
};

/// Where the list with this number begins: the table of offsets lies at the base.
std::optional<std::uint64_t> list_offset(const UnitContext& context, std::uint64_t index) {
  const std::string_view section = context.file->sections().range_lists;
  const std::uint64_t base = context.range_lists_base;
  const unsigned size = context.unit->offset_size;
  if (base > section.size() || index >= (section.size() - base) / size) return std::nullopt;
  DwarfCursor cursor(section, context.file->order(), base + index * size);
  return base + cursor.sized(size);
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
  } else if (place.ranges) {  // a section offset; constants of 4 or 8 bytes before DWARF 4
    if (context.unit->version >= 5) return reader.read_list(place.ranges.number);
    reader.read_pairs(context.ranges_base + place.ranges.number);
  } else if (const auto low = address_of(context, place.low)) {
    const auto high = address_of(context, place.high);
    reader.add(*low, high ? *high : *low + place.high.number);
  }
}

}  // namespace perfmap
