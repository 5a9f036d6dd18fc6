// SPDX-License-Identifier: MIT
#include "dwarf/dies.hpp"

#include <algorithm>
#include <dwarf.h>

#include "dwarf/dwarf_file.hpp"

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

namespace {

constexpr std::size_t kMaxAttributes = 256;  // per abbreviation
constexpr std::size_t kMaxOfAll = std::size_t{1} << 18;
constexpr std::size_t kMaxAbbreviations = std::size_t{1} << 16;

std::uint8_t stops_of(const Abbreviation& at) noexcept {
  const bool is_function = at.tag == DW_TAG_subprogram;
  const bool is_outer = at.tag == DW_TAG_inlined_subroutine || (is_function && at.may_have_code);
  return static_cast<std::uint8_t>((is_outer ? unsigned(StopAt::outer_code) : 0U) |
                                   (is_function ? unsigned(StopAt::functions) : 0U));
}

/// The end of a LEB128 number or a text of usual length; null if longer.
const char* after_leb(const char* at, const char* end) noexcept {
  for (int i = 0; i < 10 && at != end; ++i) {
    if ((static_cast<unsigned char>(*at++) & 0x80) == 0) return at;
  }
  return nullptr;
}
const char* after_block(const char* at, const char* end) noexcept {
  if (at == end || (static_cast<unsigned char>(*at) & 0x80) != 0) return nullptr;
  const auto size = static_cast<unsigned char>(*at++);
  return end - at < size ? nullptr : at + size;
}
const char* after_text(const char* at, const char* end) noexcept {
  while (at != end && *at != 0) ++at;
  return at == end ? nullptr : at + 1;
}
const char* after_value(const char* at, const char* end, std::uint16_t form) noexcept {
  switch (form) {
    case 0: return at;
    case DW_FORM_exprloc: return after_block(at, end);
    case DW_FORM_string: return after_text(at, end);
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx: return after_leb(at, end);
    default: return nullptr;
  }
}

}  // namespace

AbbreviationTable::AbbreviationTable(std::string_view section, std::endian order,
                                     const DwarfUnit& unit, std::uint64_t last) {
  DwarfCursor cursor(section, order, unit.abbreviations);
  const std::uint64_t first = cursor.position();
  if (last != 0) skip_to(cursor, last);
  while (read(cursor, unit) && last == 0) {
  }
  bytes_read_ = cursor.position() - first;
  std::ranges::stable_sort(abbreviations_, {}, &Abbreviation::code);
  if (last == 0) make_plans();
}

void AbbreviationTable::make_plans() {
  for (std::size_t i = 0; i < abbreviations_.size(); ++i) {
    if (abbreviations_[i].code != i + 1) return;
  }
  plans_.resize(abbreviations_.size() + 1);
  plans_[0].stops = static_cast<std::uint8_t>(StopAt::both);
  for (const Abbreviation& one : abbreviations_) {
    const bool is_fixed = one.is_fixed && one.size <= UINT16_MAX;
    const auto size = static_cast<std::uint16_t>(is_fixed ? one.size : 0);
    plans_[one.code] = {size, one.stops, is_fixed, one.has_children};
  }
}

/// Follows the same rules as read(), but stores nothing.
void AbbreviationTable::skip_to(DwarfCursor& cursor, std::uint64_t code) noexcept {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kMaxAbbreviations && cursor.ok(); ++i) {
    DwarfCursor next = cursor;
    const std::uint64_t found = next.uleb();
    if (found == 0 || found == code) return;
    next.uleb();  // the tag
    next.u8();
    for (std::size_t count = 0; next.ok(); ++count, ++all) {
      const std::uint64_t name = next.uleb();
      const std::uint64_t form = next.uleb();
      if (form == DW_FORM_implicit_const) next.sleb();
      if (name == 0 && form == 0) break;
      const bool too_many = count >= kMaxAttributes || all >= kMaxOfAll;
      if (form > 0xffff || name > 0xffff || too_many) next.fail();
    }
    cursor = next;
  }
  cursor.fail();
}

bool AbbreviationTable::read(DwarfCursor& cursor, const DwarfUnit& unit) {
  Abbreviation made;
  made.code = cursor.uleb();
  if (made.code == 0) return false;
  made.tag = static_cast<std::uint16_t>(std::min<std::uint64_t>(cursor.uleb(), 0xffff));
  made.has_children = cursor.u8() != 0;
  made.first_attribute = static_cast<std::uint32_t>(attributes_.size());
  made.first_step = static_cast<std::uint32_t>(steps_.size());
  made.first_place = static_cast<std::uint32_t>(places_.size());
  while (cursor.ok()) {
    const std::uint64_t name = cursor.uleb();
    const std::uint64_t form = cursor.uleb();
    const std::int64_t implicit = form == DW_FORM_implicit_const ? cursor.sleb() : 0;
    if (name == 0 && form == 0) break;
    const bool too_many = attributes_.size() - made.first_attribute >= kMaxAttributes ||
                          attributes_.size() >= kMaxOfAll;
    if (form > 0xffff || name > 0xffff || too_many) cursor.fail();
    attributes_.push_back(
        {static_cast<std::uint16_t>(name), static_cast<std::uint16_t>(form), implicit});
    attributes_.back().offset = made.size;
    made.size += fixed_size(unit, attributes_.back().form).value_or(0);
    add_step(unit, attributes_.back().form, made);
    if (name == DW_AT_low_pc || name == DW_AT_high_pc || name == DW_AT_ranges) {
      made.may_have_code |= name != DW_AT_high_pc;
      places_.push_back(attributes_.back());
      ++made.place_count;
    }
  }
  made.attribute_count = static_cast<std::uint32_t>(attributes_.size()) - made.first_attribute;
  made.stops = stops_of(made);
  made.is_fixed = made.step_count == 0 || (made.step_count == 1 && steps_.back().form == 0);
  if (cursor.ok()) abbreviations_.push_back(made);
  return cursor.ok() && abbreviations_.size() < kMaxAbbreviations;
}

void AbbreviationTable::add_step(const DwarfUnit& unit, std::uint16_t form, Abbreviation& of) {
  const bool open = of.step_count != 0 && steps_.back().form == 0;
  if (!open) {
    steps_.push_back({});
    ++of.step_count;
  }
  if (const auto size = fixed_size(unit, form)) {
    steps_.back().fixed += *size;
  } else {
    steps_.back().form = form;
  }
}

const Abbreviation* AbbreviationTable::search(std::uint64_t code) const noexcept {
  const auto found = std::ranges::lower_bound(abbreviations_, code, {}, &Abbreviation::code);
  return found != abbreviations_.end() && found->code == code ? &*found : nullptr;
}

/// The end of a DIE's attributes; null if the fast path cannot handle them.
const char* AbbreviationTable::after(const char* at, const char* end,
                                     const Abbreviation& of) const noexcept {
  const Step* const steps = steps_.data() + of.first_step;
  for (std::uint32_t i = 0; i < of.step_count && at != nullptr; ++i) {
    if (static_cast<std::size_t>(end - at) < steps[i].fixed) return nullptr;
    at = after_value(at + steps[i].fixed, end, steps[i].form);
  }
  return at;
}

void AbbreviationTable::skip_plain(DwarfCursor& cursor, StopAt stop, std::uint64_t least,
                                   std::uint64_t& depth) const noexcept {
  const std::string_view bytes = cursor.rest();
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  const std::span<const Plan> plans = plans_;
  std::uint64_t level = depth;
  while (end - at > 2 && level < kMaxDieDepth) {
    const char* next = at;
    unsigned code = static_cast<unsigned char>(*next++);
    if (code >= 0x80) {
      const auto upper = static_cast<unsigned char>(*next++);
      if (upper >= 0x80) break;
      code = (code & 0x7fU) | unsigned{upper} << 7;
    }
    if (code == 0) {
      if (level <= least) break;
      --level;
      at = next;
      continue;
    }
    if (code >= plans.size()) break;
    const Plan plan = plans[code];
    if ((plan.stops & static_cast<std::uint8_t>(stop)) != 0) break;
    if (!plan.is_fixed) {
      next = after(next, end, abbreviations_[code - 1]);
      if (next == nullptr) break;
    } else {
      if (end - next < plan.size) break;
      next += plan.size;
    }
    level += plan.has_children ? 1 : 0;
    at = next;
  }
  depth = level;
  cursor.skip(static_cast<std::uint64_t>(at - bytes.data()));
}

void AbbreviationTable::skip_rare(DwarfCursor& cursor, const DwarfUnit& unit,
                                  std::uint16_t form) noexcept {
  read_value(cursor, unit, {0, form, 0});
}

std::size_t AbbreviationTable::bytes() const noexcept {
  return abbreviations_.size() * sizeof(Abbreviation) +
         (attributes_.size() + places_.size()) * sizeof(AttributeForm) +
         steps_.size() * sizeof(Step);
}

namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 16;

DwarfValue constant(std::uint64_t number) { return {ValueKind::constant, number}; }

DwarfValue other(DwarfCursor& cursor, std::uint64_t bytes) {
  cursor.skip(bytes);
  return {ValueKind::other};
}

DwarfValue local_reference(const DwarfUnit& unit, std::uint64_t offset) {
  if (offset >= unit.end - unit.offset) return {ValueKind::other};
  return {ValueKind::reference, unit.offset + offset};
}

/// The forms that GNU's split DWARF 4 had before DWARF 5.
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
  const std::string_view rest = section.substr(offset, kMaxText);
  return rest.substr(0, rest.find('\0'));
}

/// `base` + `index` * `size`, if that is inside the section.
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
    case ValueKind::text: return value.text.substr(0, kMaxText);
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
