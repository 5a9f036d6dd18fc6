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

/// Registers by their DWARF numbers, as many as rules are kept for: x86-64 has 0 to 16 (the return
/// address), aarch64 0 to 33. Rules of other ones are read and forgotten.
inline constexpr std::size_t kMaxRegisters = 34;

/// What the caller had in a register. Source: DWARF 5, 6.4.1.
enum class RegisterHow : std::uint8_t {
  unspecified,   ///< nothing is said: as the ABI has it (preserved; the stack pointer is the CFA)
  undefined,     ///< it is lost; of the return address: there is no caller
  same_value,    ///< what it has now
  offset,        ///< in memory at CFA + number
  value_offset,  ///< CFA + number
  in_register,   ///< what the register `number` has now
  expression,    ///< in memory where the expression says
  value_expression,  ///< what the expression says
};

struct RegisterRule {
  RegisterHow how = RegisterHow::unspecified;
  std::uint32_t size = 0;   ///< of the expression; see CfiRow::expression_of()
  std::int64_t number = 0;  ///< offset or register; of expressions, where they begin

  friend bool operator==(const RegisterRule&, const RegisterRule&) = default;
};

/// Rules for all registers at once: what DW_CFA_remember_state remembers.
struct CfiRules {
  enum class Cfa : std::uint8_t { unknown, register_offset, expression };
  Cfa cfa = Cfa::unknown;
  bool ra_is_signed = false;  ///< aarch64: return addresses are signed (RA_SIGN_STATE)
  std::uint16_t cfa_register = 0;
  std::uint32_t cfa_size = 0;  ///< of the expression; see CfiRow::cfa_expression()
  /// Added to the register: the CFA is the stack pointer of the caller. Of an expression, where it
  /// begins.
  std::int64_t cfa_number = 0;
  std::array<RegisterRule, kMaxRegisters> registers = {};
};

/// How to find the caller's registers from those at one address. Expressions are evaluated with an
/// empty stack where they give the CFA, and with the CFA on it where they give a register.
/// Borrows from the table that made it.
struct CfiRow : CfiRules {
  AddressRange range;  ///< where it holds, at least: the whole row
  std::uint16_t return_register = 0;
  bool is_signal_frame = false;  ///< the caller was interrupted: its pc is no return address
  bool uses_b_key = false;       ///< aarch64: return addresses are signed with key B
  bool from_debug_frame = false;
  std::string_view section;  ///< what expressions are parts of

  std::string_view expression_of(const RegisterRule& rule) const noexcept {
    return section.substr(static_cast<std::size_t>(rule.number), rule.size);
  }
  std::string_view cfa_expression() const noexcept {
    return section.substr(static_cast<std::size_t>(cfa_number), cfa_size);
  }
};

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

/// Runs the instructions of the CIE and of the FDE as far as `vaddr`, which must be of the FDE's
/// range. Nothing where they make no sense before that, run backwards, or leave the CFA unknown.
/// Allocates nothing; O(instructions), of which there may be 1 MiB.
/// Source: DWARF 5, 6.4.2 and 7.24, and the vendors' opcodes of gcc and of aarch64.
std::optional<CfiRow> run_cfi(const CfiSection& section, const CfiCie& cie, const CfiFde& fde,
                              Address vaddr) noexcept;

}  // namespace perfmap
