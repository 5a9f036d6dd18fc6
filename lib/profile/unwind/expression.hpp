#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// What a DWARF expression may look at.
class ExpressionContext {
 public:
  /// The value of a register by its DWARF number; nothing where it is not known.
  virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  /// `size` bytes (1 to 8) of memory, as a number; nothing where they are not known.
  virtual std::optional<std::uint64_t> read(Address address, unsigned size) const = 0;

 protected:
  ~ExpressionContext() = default;
};

/// The machine that an expression is for, and the CFA where it is known already.
struct ExpressionInput {
  std::endian order = std::endian::little;
  std::uint8_t address_size = 8;  ///< 4 or 8
  /// On the stack at the beginning, and the value of DW_OP_call_frame_cfa: for expressions that
  /// give a register, not for one that gives the CFA itself.
  std::optional<Address> cfa = {};
};

/// What is on top of the stack at the end. Nothing where the expression is damaged, needs what is
/// not known, uses operations that call frame information has no use for, more than 64 places of
/// the stack, or more than 1000 steps. Allocates nothing.
/// Source: DWARF 5, 2.5.1 and 7.7.1.
std::optional<std::uint64_t> evaluate(std::string_view expression, const ExpressionInput& input,
                                      const ExpressionContext& context);

}  // namespace perfmap
