#include "modules/dwarf_values.hpp"

#include <dwarf.h>

#include "modules/dwarf_file.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 16;

DwarfValue constant(std::uint64_t number) { return {ValueKind::constant, number}; }

DwarfValue other(DwarfCursor& cursor, std::uint64_t bytes) {
  cursor.skip(bytes);
  return {ValueKind::other};
}

DwarfValue local_reference(const DwarfUnit& unit, std::uint64_t offset) {
  if (offset >= unit.end - unit.offset) return {ValueKind::other};
  return {ValueKind::reference, unit.offset + offset};
}

/// The forms of DWARF 5 that GNU's split DWARF 4 had before it.
DwarfValue read_indexed(DwarfCursor& cursor, std::uint16_t form) {
  switch (form) {
    case DW_FORM_strx:
    case DW_FORM_GNU_str_index: return {ValueKind::text_index, cursor.uleb()};
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4: return {ValueKind::text_index, cursor.sized(form - DW_FORM_strx1 + 1U)};
    case DW_FORM_addrx:
    case DW_FORM_GNU_addr_index: return {ValueKind::address_index, cursor.uleb()};
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
      return {ValueKind::address_index, cursor.sized(form - DW_FORM_addrx1 + 1U)};
    case DW_FORM_rnglistx:
    case DW_FORM_loclistx: return {ValueKind::list_index, cursor.uleb()};
    default: cursor.fail(); return {};
  }
}

DwarfValue read_indirect(DwarfCursor& cursor, const DwarfUnit& unit) {
  const std::uint64_t form = cursor.uleb();
  if (form > 0xffff || form == DW_FORM_indirect || form == DW_FORM_implicit_const) cursor.fail();
  return cursor.ok() ? read_value(cursor, unit, {0, static_cast<std::uint16_t>(form), 0})
                     : DwarfValue{};
}

std::string_view text_at(std::string_view section, std::uint64_t offset) {
  if (offset >= section.size()) return {};
  const std::string_view rest = section.substr(offset, kMostText);
  return rest.substr(0, rest.find('\0'));
}

/// `base` + `index` * `size`, if that lies in the section.
std::optional<std::uint64_t> entry_offset(std::string_view section, std::uint64_t base,
                                          std::uint64_t index, std::uint8_t size) {
  if (base > section.size() || index >= (section.size() - base) / size) return std::nullopt;
  return base + index * size;
}

std::string_view indexed_text(const UnitContext& context, std::uint64_t index) {
  const DwarfSections& sections = context.file->sections();
  const std::uint8_t size = context.unit->offset_size;
  const auto at = entry_offset(sections.string_offsets, context.string_offsets_base, index, size);
  if (!at) return {};
  DwarfCursor cursor(sections.string_offsets, context.file->order(), *at);
  return text_at(sections.strings, cursor.sized(size));
}

}  // namespace

std::optional<std::uint8_t> fixed_size(const DwarfUnit& unit, std::uint16_t form) noexcept {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return std::uint8_t{0};
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return std::uint8_t{1};
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return std::uint8_t{2};
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return std::uint8_t{3};
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4: return std::uint8_t{4};
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8: return std::uint8_t{8};
    case DW_FORM_data16: return std::uint8_t{16};
    case DW_FORM_addr: return unit.address_size;
    case DW_FORM_ref_addr: return unit.version == 2 ? unit.address_size : unit.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return unit.offset_size;
    default: return std::nullopt;
  }
}

DwarfValue read_value(DwarfCursor& cursor, const DwarfUnit& unit, AttributeForm form) noexcept {
  switch (form.form) {
    case DW_FORM_addr: return {ValueKind::address, cursor.sized(unit.address_size)};
    case DW_FORM_data1:
    case DW_FORM_flag: return constant(cursor.u8());
    case DW_FORM_data2: return constant(cursor.u16());
    case DW_FORM_data4: return constant(cursor.u32());
    case DW_FORM_data8: return constant(cursor.u64());
    case DW_FORM_udata: return constant(cursor.uleb());
    case DW_FORM_sdata: return constant(static_cast<std::uint64_t>(cursor.sleb()));
    case DW_FORM_implicit_const: return constant(static_cast<std::uint64_t>(form.implicit));
    case DW_FORM_flag_present: return constant(1);
    case DW_FORM_string: return {ValueKind::text, 0, cursor.c_string()};
    case DW_FORM_strp: return {ValueKind::text_offset, cursor.sized(unit.offset_size)};
    case DW_FORM_line_strp: return {ValueKind::line_text_offset, cursor.sized(unit.offset_size)};
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt: return {ValueKind::alternate_text, cursor.sized(unit.offset_size)};
    case DW_FORM_sec_offset: return {ValueKind::section_offset, cursor.sized(unit.offset_size)};
    case DW_FORM_ref1: return local_reference(unit, cursor.u8());
    case DW_FORM_ref2: return local_reference(unit, cursor.u16());
    case DW_FORM_ref4: return local_reference(unit, cursor.u32());
    case DW_FORM_ref8: return local_reference(unit, cursor.u64());
    case DW_FORM_ref_udata: return local_reference(unit, cursor.uleb());
    case DW_FORM_ref_addr:
      return {ValueKind::reference,
              cursor.sized(unit.version == 2 ? unit.address_size : unit.offset_size)};
    case DW_FORM_ref_sup4: return {ValueKind::alternate_reference, cursor.u32()};
    case DW_FORM_ref_sup8: return {ValueKind::alternate_reference, cursor.u64()};
    case DW_FORM_GNU_ref_alt:
      return {ValueKind::alternate_reference, cursor.sized(unit.offset_size)};
    case DW_FORM_block1: return other(cursor, cursor.u8());
    case DW_FORM_block2: return other(cursor, cursor.u16());
    case DW_FORM_block4: return other(cursor, cursor.u32());
    case DW_FORM_block:
    case DW_FORM_exprloc: return other(cursor, cursor.uleb());
    case DW_FORM_data16: return other(cursor, 16);
    case DW_FORM_ref_sig8: return other(cursor, 8);
    case DW_FORM_indirect: return read_indirect(cursor, unit);
    default: return read_indexed(cursor, form.form);
  }
}

std::string_view text_of(const UnitContext& context, const DwarfValue& value) noexcept {
  const DwarfSections& sections = context.file->sections();
  const DwarfFile* const alternate = context.file->alternate();
  switch (value.kind) {
    case ValueKind::text: return value.text.substr(0, kMostText);
    case ValueKind::text_offset: return text_at(sections.strings, value.number);
    case ValueKind::line_text_offset: return text_at(sections.line_strings, value.number);
    case ValueKind::text_index: return indexed_text(context, value.number);
    case ValueKind::alternate_text:
      return alternate == nullptr ? std::string_view{}
                                  : text_at(alternate->sections().strings, value.number);
    default: return {};
  }
}

std::optional<std::uint64_t> indexed_address(const UnitContext& context,
                                             std::uint64_t index) noexcept {
  const std::string_view section = context.skeleton_file->sections().addresses;
  const std::uint8_t size = context.unit->address_size;
  const auto at = entry_offset(section, context.addresses_base, index, size);
  if (!at) return std::nullopt;
  return DwarfCursor(section, context.skeleton_file->order(), *at).sized(size);
}

std::optional<std::uint64_t> address_of(const UnitContext& context,
                                        const DwarfValue& value) noexcept {
  if (value.kind == ValueKind::address) return value.number;
  if (value.kind == ValueKind::address_index) return indexed_address(context, value.number);
  return std::nullopt;
}

}  // namespace perfmap
