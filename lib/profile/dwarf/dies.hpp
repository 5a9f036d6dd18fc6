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

/// Beyond it, no DIE is read.
inline constexpr std::size_t kMaxDieDepth = std::size_t{1} << 20;

struct AttributeForm {
  std::uint16_t name = 0;
  std::uint16_t form = 0;
  std::int64_t implicit = 0;  ///< the value itself, for DW_FORM_implicit_const
  std::uint32_t offset = 0;   ///< from the first attribute, where Abbreviation::is_fixed
};

struct Abbreviation {
  std::uint64_t code = 0;
  std::uint16_t tag = 0;
  bool has_children = false;
  bool may_have_code = false;  ///< says where code begins, or which ranges it has
  std::uint8_t stops = 0;      ///< StopAt: what of it
  bool is_fixed = false;       ///< every DIE takes `size` bytes behind its code
  std::uint32_t size = 0;
  std::uint32_t first_place = 0;
  std::uint32_t place_count = 0;
  std::uint32_t first_attribute = 0;
  std::uint32_t attribute_count = 0;
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;
};

/// Where AbbreviationTable::skip_plain() stops: at functions and inlined calls that are no part of
/// a function that is known by now, or at those within one.
enum class StopAt : std::uint8_t { outer_code = 1, functions = 2, both = 3 };

/// The abbreviations of one unit (DWARF 5, 7.5.3), made for going over DIEs fast: neighbouring
/// attributes of fixed size are skipped in one addition.
class AbbreviationTable {
 public:
  /// O(bytes of the table). What stands behind damage is missing, and so is what stands behind
  /// the code `last`, or before it, if that is not 0. As damage count more than 256 attributes of
  /// one abbreviation, some of which take no byte in a DIE, and more of all than compilers need.
  AbbreviationTable(std::string_view section, std::endian order, const DwarfUnit& unit,
                    std::uint64_t last = 0);

  const Abbreviation* find(std::uint64_t code) const noexcept {
    // Codes are 1, 2, 3 from every compiler.
    if (code - 1 < abbreviations_.size() && abbreviations_[code - 1].code == code) {
      return &abbreviations_[code - 1];
    }
    return search(code);
  }
  std::span<const AttributeForm> attributes(const Abbreviation& of) const noexcept {
    return std::span(attributes_).subspan(of.first_attribute, of.attribute_count);
  }
  /// Those that say where code is: DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges.
  std::span<const AttributeForm> places(const Abbreviation& of) const noexcept {
    return std::span(places_).subspan(of.first_place, of.place_count);
  }
  /// Moves the cursor over DIEs, and over ends of levels as long as `depth` does not fall below
  /// `least`. Stops before what needs a closer look.
  void skip_plain(DwarfCursor& cursor, StopAt stop, std::uint64_t least,
                  std::uint64_t& depth) const noexcept;
  /// Moves the cursor from the first attribute of a DIE behind its last.
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
    std::uint16_t form = 0;   // of variable size, behind them; 0: none
  };
  const char* behind(const char* at, const char* end, const Abbreviation& of) const noexcept;
  static void skip_variable(DwarfCursor& cursor, const DwarfUnit& unit,
                            std::uint16_t form) noexcept {
    if (form == DW_FORM_exprloc) return cursor.skip(cursor.uleb());
    if (form == DW_FORM_string) return cursor.skip_c_string();
    skip_rare(cursor, unit, form);
  }
  static void skip_rare(DwarfCursor& cursor, const DwarfUnit& unit, std::uint16_t form) noexcept;
  const Abbreviation* search(std::uint64_t code) const noexcept;
  /// What skip_plain() has to know, by code.
  struct Plan {
    std::uint16_t size = 0;  // where is_fixed
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
  std::vector<Plan> plans_;  // empty where codes are not 1, 2, 3
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
  text_index,        ///< by .debug_str_offsets
  alternate_text,    ///< .debug_str of the alternate file
  reference,         ///< an offset into .debug_info
  alternate_reference,
  other,  ///< expressions, blocks, signatures
};

/// What an attribute says, not yet looked up.
struct DwarfValue {
  ValueKind kind = ValueKind::none;
  std::uint64_t number = 0;
  std::string_view text = {};

  explicit operator bool() const noexcept { return kind != ValueKind::none; }
};

/// Bytes that every value of this form takes; none where that varies or the form is unknown.
std::optional<std::uint8_t> fixed_size(const DwarfUnit& unit, std::uint16_t form) noexcept;

/// The value at the cursor; it fails where the form is not known, since then nothing behind it is.
DwarfValue read_value(DwarfCursor& cursor, const DwarfUnit& unit, AttributeForm form) noexcept;

/// A unit with what one needs to make sense of its values. A split unit's addresses, and before
/// DWARF 5 its ranges, are in the file of its skeleton.
struct UnitContext {
  const DwarfFile* file = nullptr;
  const DwarfFile* skeleton_file = nullptr;  ///< the same, unless split
  const DwarfUnit* unit = nullptr;
  std::uint64_t base_address = 0;  ///< DW_AT_low_pc
  std::uint64_t string_offsets_base = 0;
  std::uint64_t addresses_base = 0;
  std::uint64_t range_lists_base = 0;
  std::uint64_t ranges_base = 0;  ///< GNU's, before DWARF 5: added to DW_AT_ranges of a split unit
};

/// Empty where the value is no text or leads nowhere; cut at 64 KiB.
std::string_view text_of(const UnitContext& context, const DwarfValue& value) noexcept;
std::optional<std::uint64_t> address_of(const UnitContext& context,
                                        const DwarfValue& value) noexcept;
/// The address with this number in .debug_addr.
std::optional<std::uint64_t> indexed_address(const UnitContext& context,
                                             std::uint64_t index) noexcept;

}  // namespace perfmap
