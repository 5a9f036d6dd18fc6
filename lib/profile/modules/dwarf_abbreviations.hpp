#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "modules/dwarf_cursor.hpp"
#include "modules/dwarf_unit.hpp"

namespace perfmap {

struct AttributeForm {
  std::uint16_t name = 0;
  std::uint16_t form = 0;
  std::int64_t implicit = 0;  ///< the value itself, for DW_FORM_implicit_const
};

struct Abbreviation {
  std::uint64_t code = 0;
  std::uint16_t tag = 0;
  bool has_children = false;
  std::uint32_t first_attribute = 0;
  std::uint32_t attribute_count = 0;
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;
};

/// The abbreviations of one unit (DWARF 5, 7.5.3), made for going over DIEs fast: neighbouring
/// attributes of fixed size are skipped in one addition.
class AbbreviationTable {
 public:
  /// O(bytes of the table). What stands behind damage is missing, and so is what stands behind
  /// the code `last`, if the table has that. As damage count more than 256 attributes of one
  /// abbreviation, some of which take no byte in a DIE, and more of all than compilers need.
  AbbreviationTable(std::string_view section, std::endian order, const DwarfUnit& unit,
                    std::uint64_t last = 0);

  const Abbreviation* find(std::uint64_t code) const noexcept;
  std::span<const AttributeForm> attributes(const Abbreviation& of) const noexcept {
    return std::span(attributes_).subspan(of.first_attribute, of.attribute_count);
  }
  /// Moves the cursor from the first attribute of a DIE behind its last.
  void skip(DwarfCursor& cursor, const DwarfUnit& unit, const Abbreviation& of) const noexcept;
  std::size_t bytes() const noexcept;
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  struct Step {
    std::uint32_t fixed = 0;  // bytes
    std::uint16_t form = 0;   // of variable size, behind them; 0: none
  };
  bool read(DwarfCursor& cursor, const DwarfUnit& unit);
  void add_step(const DwarfUnit& unit, std::uint16_t form, Abbreviation& of);

  std::vector<Abbreviation> abbreviations_;
  std::vector<AttributeForm> attributes_;
  std::vector<Step> steps_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace perfmap
