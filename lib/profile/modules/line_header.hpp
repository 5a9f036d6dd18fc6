#pragma once

#include <cstdint>

#include "modules/line_program.hpp"

namespace perfmap {

/// Reads the header at `offset` of .debug_line, versions 2 to 5. Borrows the section.
LineHeader read_line_header(const UnitContext& context, std::uint64_t offset, LineNames& names);

}  // namespace perfmap
