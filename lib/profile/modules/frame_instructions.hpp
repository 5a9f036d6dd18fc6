#pragma once

#include <string_view>

namespace perfmap {

/// Whether these call frame instructions are all known and whole, and mean the same wherever the
/// code lies. Source: DWARF 5, 6.4.2 and 7.24, and the vendors' opcodes of gcc. O(bytes).
bool can_be_moved(std::string_view instructions) noexcept;

}  // namespace perfmap
