// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "elf/dwarf_cursor.hpp"
#include "elf/target.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The number of registers for which rules are kept, by DWARF number: x86-64 has 0 to 16 (the
/// return address), aarch64 0 to 33. Rules for other registers are read and dropped.
inline constexpr std::size_t kMaxRegisters = 34;

/// How to find the caller's value of a register. Source: DWARF 5, 6.4.1.
enum class RegisterHow : std::uint8_t {
  unspecified,       ///< no rule: the ABI's default (preserved; the stack pointer is the CFA)
  undefined,         ///< lost; for the return address: there is no caller
  same_value,        ///< unchanged
  offset,            ///< in memory at CFA + number
  value_offset,      ///< CFA + number
  in_register,       ///< current value of the register `number`
  expression,        ///< in memory at the address given by the expression
  value_expression,  ///< the value of the expression
};

struct RegisterRule {
  RegisterHow how = RegisterHow::unspecified;
  std::uint32_t size = 0;   ///< of the expression; see CfiRow::expression_of()
  std::int64_t number = 0;  ///< an offset or register; for expressions, where they begin

  bool is_kept() const noexcept {
    return how == RegisterHow::unspecified || how == RegisterHow::same_value;
  }
  friend bool operator==(const RegisterRule&, const RegisterRule&) = default;
};

/// The rules for all registers: what DW_CFA_remember_state saves.
struct CfiRules {
  enum class Cfa : std::uint8_t { unknown, register_offset, expression };
  Cfa cfa = Cfa::unknown;
  bool ra_is_signed = false;  ///< aarch64: return addresses are signed (RA_SIGN_STATE)
  std::uint16_t cfa_register = 0;
  std::uint32_t cfa_size = 0;  ///< of the expression; see CfiRow::cfa_expression()
  /// Added to the register; the CFA is the caller's stack pointer. For an expression, where it
  /// begins.
  std::int64_t cfa_number = 0;
  std::array<RegisterRule, kMaxRegisters> registers = {};
};

/// How to find the caller's registers from those at one address. An expression for the CFA starts
/// with an empty stack; one for a register, with the CFA on the stack. Borrows from the table that
/// made it.
struct CfiRow : CfiRules {
  AddressRange range;  ///< where it is valid, at least: the whole row
  std::uint16_t return_register = 0;
  bool is_signal_frame = false;  ///< the caller was interrupted: its pc is not a return address
  bool uses_b_key = false;       ///< aarch64: return addresses are signed with key B
  bool from_debug_frame = false;
  std::string_view section;  ///< expressions are parts of this

  std::string_view expression_of(const RegisterRule& rule) const noexcept {
    return section.substr(static_cast<std::size_t>(rule.number), rule.size);
  }
  std::string_view cfa_expression() const noexcept {
    return section.substr(static_cast<std::size_t>(cfa_number), cfa_size);
  }
};

/// A section with call frame information. Borrowed.
struct CfiSection {
  std::string_view bytes;
  Address address = 0;  ///< its load address; only for .eh_frame
  Target target = {};
  bool is_debug_frame = false;
};

/// The position of an entry, and whether it is a CIE or an FDE. All values are offsets in the
/// section.
struct CfiEntry {
  std::uint64_t body = 0;  ///< after the id or the pointer to the CIE
  std::uint64_t end = 0;   ///< end of the entry, offset of the next
  std::uint64_t cie = 0;   ///< of an FDE
  bool is_cie = false;
};

/// The entry at this offset. Nothing at the end of the section, at a terminator, and if the length
/// is invalid. If the CIE of an FDE lies outside of the section, `cie` is beyond the end.
std::optional<CfiEntry> read_cfi_entry(const CfiSection& section, std::uint64_t offset) noexcept;

/// What several FDEs share.
struct CfiCie {
  std::uint8_t encoding = 0;      ///< DW_EH_PE_… of addresses in its FDEs
  std::uint8_t address_size = 8;  ///< of DW_EH_PE_absptr
  std::uint8_t segment_size = 0;  ///< of the selectors before addresses
  bool has_size = false;          ///< its FDEs state the length of their augmentation
  bool is_signal_frame = false;
  bool uses_b_key = false;
  std::uint16_t return_register = 0;
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint64_t begin = 0, end = 0;  ///< of the instructions
};

/// Nothing if there is no CIE at this offset, or one with an unknown augmentation. O(1).
std::optional<CfiCie> read_cie(const CfiSection& section, std::uint64_t offset) noexcept;

/// The rules for one function.
struct CfiFde {
  AddressRange range;
  std::uint64_t begin = 0, end = 0;  ///< of the instructions
};

/// For an entry from read_cfi_entry(), with its CIE. O(1).
std::optional<CfiFde> read_fde(const CfiSection& section, const CfiEntry& entry,
                               const CfiCie& cie) noexcept;

/// The bases of encoded pointers in a section.
struct CfiPointers {
  Address section = 0;               ///< load address of the cursor's first byte
  std::optional<Address> data = {};  ///< of DW_EH_PE_datarel
  std::uint8_t address_size = 8;

  std::uint64_t last_address() const noexcept {
    return address_size == 8 ? UINT64_MAX : UINT32_MAX;
  }
};

/// The number in the format of this encoding (DW_EH_PE_…), without a base: a size. Nothing for an
/// unknown format.
std::optional<std::uint64_t> read_cfi_number(DwarfCursor& cursor, std::uint8_t encoding,
                                             const CfiPointers& pointers) noexcept;

/// A pointer with its base. Nothing, too, if the base is unknown (text, function), and for indirect
/// pointers, whose memory is not available.
/// Source: Linux Standard Base 5.0, "DWARF Exception Header Encoding".
std::optional<Address> read_cfi_pointer(DwarfCursor& cursor, std::uint8_t encoding,
                                        const CfiPointers& pointers) noexcept;

/// Runs the instructions of the CIE and the FDE up to `vaddr`, which must be in the FDE's range.
/// Nothing if they are invalid before that, go backwards, or leave the CFA unknown. Allocates
/// nothing. O(instructions), at most 1 MiB.
/// Source: DWARF 5, 6.4.2 and 7.24, and the vendor opcodes of gcc and aarch64.
std::optional<CfiRow> run_cfi(const CfiSection& section, const CfiCie& cie, const CfiFde& fde,
                              Address vaddr) noexcept;

}  // namespace perfmap
