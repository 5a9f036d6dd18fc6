#pragma once

#include <cstdint>
#include <optional>

#include "modules/dwarf_cursor.hpp"
#include "perfmap/address.hpp"

namespace perfmap {

/// What encoded pointers of a section are relative to.
struct CfiPointers {
  Address section = 0;               ///< where the cursor's first byte is loaded
  std::optional<Address> data = {};  ///< of DW_EH_PE_datarel
  std::uint8_t address_size = 8;

  std::uint64_t last_address() const noexcept {
    return address_size == 8 ? UINT64_MAX : UINT32_MAX;
  }
};

/// The number of a pointer with the format of this encoding (DW_EH_PE_…), and without its base: a
/// size. Nothing for a format that nobody knows.
std::optional<std::uint64_t> read_cfi_number(DwarfCursor& cursor, std::uint8_t encoding,
                                             const CfiPointers& pointers) noexcept;

/// A pointer. Nothing, too, where what it is relative to is unknown (the text, the function), and
/// for pointers to pointers: those are in memory that is not here.
/// Source: Linux Standard Base 5.0, "DWARF Exception Header Encoding".
std::optional<Address> read_cfi_pointer(DwarfCursor& cursor, std::uint8_t encoding,
                                        const CfiPointers& pointers) noexcept;

}  // namespace perfmap
