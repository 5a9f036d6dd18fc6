// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <dwarf.h>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "elf/dwarf_cursor.hpp"

namespace perfmap {

/// The header of a unit (DWARF 5, 7.5.1). Offsets are into .debug_info.
struct DwarfUnit {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t first_die = 0;
  std::uint64_t abbreviations = 0;  ///< offset into .debug_abbrev
  std::uint64_t split_id = 0;       ///< DWARF 5: links a skeleton and its split unit
  std::uint16_t version = 0;
  std::uint8_t type = 0;  ///< DW_UT_…; DW_UT_compile before DWARF 5
  std::uint8_t address_size = 8;
  std::uint8_t offset_size = 4;

  bool is_readable() const noexcept { return first_die != 0; }
};

/// Reads the header at the cursor and moves past the unit. A unit of an unknown version is skipped
/// and marked as not readable. The cursor fails if the length is invalid.
DwarfUnit read_unit_header(DwarfCursor& cursor);

/// DIEs nested deeper are not read.
inline constexpr std::size_t kMaxDieDepth = std::size_t{1} << 20;

struct AttributeForm {
  std::uint16_t name = 0;
  std::uint16_t form = 0;
  std::int64_t implicit = 0;  ///< the value for DW_FORM_implicit_const
  std::uint32_t offset = 0;   ///< from the first attribute, if Abbreviation::is_fixed
};

struct Abbreviation {
  std::uint64_t code = 0;
  std::uint16_t tag = 0;
  bool has_children = false;
  bool may_have_code = false;  ///< has DW_AT_low_pc or DW_AT_ranges
  std::uint8_t stops = 0;      ///< bits of StopAt
  bool is_fixed = false;       ///< each DIE takes `size` bytes after its code
  std::uint32_t size = 0;
  std::uint32_t first_place = 0;
  std::uint32_t place_count = 0;
  std::uint32_t first_attribute = 0;
  std::uint32_t attribute_count = 0;
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;
};

/// Where AbbreviationTable::skip_plain() stops: at functions and inlined calls outside of known
/// functions, or at those within one.
enum class StopAt : std::uint8_t { outer_code = 1, functions = 2, both = 3 };

/// The abbreviations of one unit (DWARF 5, 7.5.3), prepared for fast iteration over DIEs: adjacent
/// attributes of fixed size are skipped with one addition.
class AbbreviationTable {
 public:
  /// O(bytes of the table). Entries after damage are missing, and so are entries after the code
  /// `last`, or before it, if `last` is not 0. More than 256 attributes in one abbreviation count
  /// as damage, because some take no byte in a DIE; so do more attributes in total than compilers
  /// need.
  AbbreviationTable(std::string_view section, std::endian order, const DwarfUnit& unit,
                    std::uint64_t last = 0);

  const Abbreviation* find(std::uint64_t code) const noexcept {
    // All compilers use the codes 1, 2, 3, ....
    if (code - 1 < abbreviations_.size() && abbreviations_[code - 1].code == code) {
      return &abbreviations_[code - 1];
    }
    return search(code);
  }
  std::span<const AttributeForm> attributes(const Abbreviation& of) const noexcept {
    return std::span(attributes_).subspan(of.first_attribute, of.attribute_count);
  }
  /// The attributes for code addresses: DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges.
  std::span<const AttributeForm> places(const Abbreviation& of) const noexcept {
    return std::span(places_).subspan(of.first_place, of.place_count);
  }
  /// Skips DIEs, and ends of levels as long as `depth` does not fall below `least`. Stops before a
  /// DIE that must be read.
  void skip_plain(DwarfCursor& cursor, StopAt stop, std::uint64_t least,
                  std::uint64_t& depth) const noexcept;
  /// Moves the cursor from the first attribute of a DIE to the end of the last.
  void skip(DwarfCursor& cursor, const DwarfUnit& unit, const Abbreviation& of) const noexcept {
    for (const Step& step : std::span(steps_).subspan(of.first_step, of.step_count)) {
      cursor.skip(step.fixed);
      if (step.form != 0) skip_variable(cursor, unit, step.form);
    }
  }
  std::size_t bytes() const noexcept;
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  struct Step {
    std::uint32_t fixed = 0;  // bytes
    std::uint16_t form = 0;   // one of variable size after them; 0: none
  };
  const char* after(const char* at, const char* end, const Abbreviation& of) const noexcept;
  static void skip_variable(DwarfCursor& cursor, const DwarfUnit& unit,
                            std::uint16_t form) noexcept {
    if (form == DW_FORM_exprloc) return cursor.skip(cursor.uleb());
    if (form == DW_FORM_string) return cursor.skip_c_string();
    skip_rare(cursor, unit, form);
  }
  static void skip_rare(DwarfCursor& cursor, const DwarfUnit& unit, std::uint16_t form) noexcept;
  const Abbreviation* search(std::uint64_t code) const noexcept;
  /// What skip_plain() needs, by code.
  struct Plan {
    std::uint16_t size = 0;  // if is_fixed
    std::uint8_t stops = 0;
    bool is_fixed : 1 = false;
    bool has_children : 1 = false;
  };
  void make_plans();
  static void skip_to(DwarfCursor& cursor, std::uint64_t code) noexcept;
  bool read(DwarfCursor& cursor, const DwarfUnit& unit);
  void add_step(const DwarfUnit& unit, std::uint16_t form, Abbreviation& of);

  std::vector<Abbreviation> abbreviations_;
  std::vector<AttributeForm> attributes_;
  std::vector<AttributeForm> places_;
  std::vector<Step> steps_;
  std::vector<Plan> plans_;  // empty if codes are not 1, 2, 3, ...
  std::uint64_t bytes_read_ = 0;
};

class DwarfFile;

enum class ValueKind : std::uint8_t {
  none,
  constant,
  address,
  address_index,
  section_offset,
  list_index,
  text,              ///< in the DIE
  text_offset,       ///< .debug_str
  line_text_offset,  ///< .debug_line_str
  text_index,        ///< index into .debug_str_offsets
  alternate_text,    ///< .debug_str of the alternate file
  reference,         ///< an offset into .debug_info
  alternate_reference,
  other,  ///< expressions, blocks, signatures
};

/// The raw value of an attribute, before any look-up.
struct DwarfValue {
  ValueKind kind = ValueKind::none;
  std::uint64_t number = 0;
  std::string_view text = {};

  explicit operator bool() const noexcept { return kind != ValueKind::none; }
};

/// The size of all values of this form; nothing if it varies or the form is unknown.
std::optional<std::uint8_t> fixed_size(const DwarfUnit& unit, std::uint16_t form) noexcept;

/// The value at the cursor. The cursor fails on an unknown form, because the end of the value is
/// unknown.
DwarfValue read_value(DwarfCursor& cursor, const DwarfUnit& unit, AttributeForm form) noexcept;

/// A unit with the bases needed to interpret its values. Addresses of a split unit, and before
/// DWARF 5 its ranges, are in the file of its skeleton.
struct UnitContext {
  const DwarfFile* file = nullptr;
  const DwarfFile* skeleton_file = nullptr;  ///< the same file, unless split
  const DwarfUnit* unit = nullptr;
  std::uint64_t base_address = 0;  ///< DW_AT_low_pc
  std::uint64_t string_offsets_base = 0;
  std::uint64_t addresses_base = 0;
  std::uint64_t range_lists_base = 0;
  std::uint64_t ranges_base = 0;  ///< GNU, before DWARF 5: added to DW_AT_ranges of a split unit
};

/// Empty if the value is not a text or its reference is invalid; cut at 64 KiB.
std::string_view text_of(const UnitContext& context, const DwarfValue& value) noexcept;
std::optional<std::uint64_t> address_of(const UnitContext& context,
                                        const DwarfValue& value) noexcept;
/// The address at this index in .debug_addr.
std::optional<std::uint64_t> indexed_address(const UnitContext& context,
                                             std::uint64_t index) noexcept;

}  // namespace perfmap
