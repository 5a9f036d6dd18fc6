#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "perfmap/address.hpp"

namespace perfmap {

/// Registers by their DWARF numbers, as many as rules are kept for: x86-64 has 0 to 16 (the return
/// address), aarch64 0 to 33. Rules of other ones are read and forgotten.
inline constexpr std::size_t kMostRegisters = 34;

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
  std::array<RegisterRule, kMostRegisters> registers = {};
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

}  // namespace perfmap
