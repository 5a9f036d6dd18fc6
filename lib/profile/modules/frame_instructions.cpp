#include "modules/frame_instructions.hpp"

#include <array>
#include <bit>
#include <cstdint>

#include "modules/frame_bytes.hpp"

namespace perfmap {
namespace {

/// What stands behind an opcode: bytes of fixed length, LEB128 numbers (whose sign does not matter
/// for their length), a block.
struct Operands {
  std::uint8_t fixed = 0;
  std::uint8_t numbers = 0;
  bool block = false;
  bool known = true;
};

constexpr Operands kUnknown{0, 0, false, false};

/// Opcodes of which the two high bits are clear. DW_CFA_set_loc is taken for unknown: it holds an
/// address, and no compiler writes it.
constexpr std::array<Operands, 64> operands_by_opcode() {
  std::array<Operands, 64> all{};
  for (Operands& operands : all) operands = kUnknown;
  for (const unsigned none : {0x00u, 0x0au, 0x0bu, 0x2du}) all[none] = {};
  all[0x02] = {1, 0, false, true};  // advance_loc1, 2, 4, MIPS_advance_loc8
  all[0x03] = {2, 0, false, true};
  all[0x04] = {4, 0, false, true};
  all[0x1d] = {8, 0, false, true};
  for (const unsigned one : {0x06u, 0x07u, 0x08u, 0x0du, 0x0eu, 0x13u, 0x2eu}) {
    all[one] = {0, 1, false, true};
  }
  for (const unsigned two : {0x05u, 0x09u, 0x0cu, 0x11u, 0x12u, 0x14u, 0x15u, 0x2fu}) {
    all[two] = {0, 2, false, true};
  }
  all[0x0f] = {0, 0, true, true};  // def_cfa_expression
  all[0x10] = {0, 1, true, true};  // expression, val_expression
  all[0x16] = {0, 1, true, true};
  return all;
}

constexpr std::array<Operands, 64> kOperands = operands_by_opcode();

Operands operands_of(std::uint8_t opcode) noexcept {
  switch (opcode >> 6) {
    case 0: return kOperands[opcode];
    case 2: return {0, 1, false, true};  // DW_CFA_offset
    default: return {};                  // DW_CFA_advance_loc, DW_CFA_restore
  }
}

}  // namespace

bool can_be_moved(std::string_view instructions) noexcept {
  Cursor cursor(instructions, std::endian::native);
  while (!cursor.rest().empty()) {
    const Operands operands = operands_of(read_u8(cursor));
    if (!operands.known) return false;
    cursor.skip(operands.fixed);
    for (unsigned i = 0; i < operands.numbers; ++i) read_uleb(cursor);
    if (operands.block) cursor.skip(read_uleb(cursor));
    if (!cursor.ok()) return false;
  }
  return true;
}

}  // namespace perfmap
