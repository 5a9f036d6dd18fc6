// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// What a DWARF expression may read.
class ExpressionContext {
 public:
  /// The value of a register by its DWARF number; nothing if unknown.
  virtual std::optional<std::uint64_t> register_value(std::uint64_t number) const = 0;
  /// `size` bytes (1 to 8) of memory, as a number; nothing if unknown.
  virtual std::optional<std::uint64_t> read(Address address, unsigned size) const = 0;

 protected:
  ~ExpressionContext() = default;
};

/// The machine of an expression, and the CFA if it is known already.
struct ExpressionInput {
  std::endian order = std::endian::little;
  std::uint8_t address_size = 8;  ///< 4 or 8
  /// The initial stack entry, and the value of DW_OP_call_frame_cfa: for expressions that compute a
  /// register, not for one that computes the CFA itself.
  std::optional<Address> cfa = {};
};

/// The top of the stack at the end. Nothing if the expression is damaged, needs unknown values,
/// uses operations that are useless in call frame information, or exceeds 64 stack entries or 1000
/// steps. Allocates nothing.
/// Source: DWARF 5, 2.5.1 and 7.7.1.
std::optional<std::uint64_t> evaluate(std::string_view expression, const ExpressionInput& input,
                                      const ExpressionContext& context);

}  // namespace perfmap
