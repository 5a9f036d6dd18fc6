#pragma once

#include <optional>

#include "modules/cfi_entry.hpp"
#include "modules/cfi_rule.hpp"

namespace perfmap {

/// Runs the instructions of the CIE and of the FDE as far as `vaddr`, which must be of the FDE's
/// range. Nothing where they make no sense before that, run backwards, or leave the CFA unknown.
/// Allocates nothing; O(instructions), of which there may be 1 MiB.
/// Source: DWARF 5, 6.4.2 and 7.24, and the vendors' opcodes of gcc and of aarch64.
std::optional<CfiRow> run_cfi(const CfiSection& section, const CfiCie& cie, const CfiFde& fde,
                              Address vaddr) noexcept;

}  // namespace perfmap
