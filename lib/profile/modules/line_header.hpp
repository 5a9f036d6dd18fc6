#pragma once

#include <cstdint>
#include <string_view>

#include "modules/line_program.hpp"

namespace perfmap {

/// What the opcodes of a line program mean, and where they are.
struct LineHeader {
  std::uint8_t address_size = 8;
  std::uint8_t minimum_length = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 0;
  std::uint8_t opcode_base = 0;
  std::string_view operand_counts;  ///< of the standard opcodes, from 1
  std::string_view program;
  bool ok = false;  ///< false: `program` is empty
};

/// Reads the header at `offset` of .debug_line, versions 2 to 5. Borrows the section.
LineHeader read_line_header(const UnitContext& context, std::uint64_t offset, LineNames& names);

}  // namespace perfmap
