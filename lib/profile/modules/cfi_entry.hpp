#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "modules/target.hpp"
#include "perfmap/address.hpp"

namespace perfmap {

/// A section of call frame information. Borrowed.
struct CfiSection {
  std::string_view bytes;
  Address address = 0;  ///< where it is loaded; of .eh_frame alone
  Target target = {};
  bool is_debug_frame = false;
};

/// Where an entry lies, and which of the two kinds it is. All are offsets in the section.
struct CfiEntry {
  std::uint64_t body = 0;  ///< behind the id or the pointer to the CIE
  std::uint64_t end = 0;   ///< of the entry: the next one's offset
  std::uint64_t cie = 0;   ///< of an FDE
  bool is_cie = false;
};

/// The entry at this offset. Nothing at the end: of the section, at a terminator, and where a
/// length makes no sense. An FDE whose CIE lies outside of the section is an FDE without a CIE:
/// `cie` is beyond the end.
std::optional<CfiEntry> read_cfi_entry(const CfiSection& section, std::uint64_t offset) noexcept;

/// What FDEs have in common.
struct CfiCie {
  std::uint8_t encoding = 0;      ///< DW_EH_PE_… of addresses in its FDEs
  std::uint8_t address_size = 8;  ///< of DW_EH_PE_absptr
  std::uint8_t segment_size = 0;  ///< of the selectors before addresses
  bool has_size = false;          ///< its FDEs say how long their augmentation is
  bool is_signal_frame = false;
  bool uses_b_key = false;
  std::uint16_t return_register = 0;
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint64_t begin = 0, end = 0;  ///< of the instructions
};

/// Nothing where there is no CIE at this offset, or one with an unknown augmentation. O(1).
std::optional<CfiCie> read_cie(const CfiSection& section, std::uint64_t offset) noexcept;

/// What an FDE says of one function.
struct CfiFde {
  AddressRange range;
  std::uint64_t begin = 0, end = 0;  ///< of the instructions
};

/// Of an entry that read_cfi_entry() gave, with its CIE. O(1).
std::optional<CfiFde> read_fde(const CfiSection& section, const CfiEntry& entry,
                               const CfiCie& cie) noexcept;

}  // namespace perfmap
