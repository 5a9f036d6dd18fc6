#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "modules/dwarf_abbreviations.hpp"
#include "modules/dwarf_cursor.hpp"
#include "modules/dwarf_unit.hpp"

namespace perfmap {

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
