// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "dwarf/cfi_program.hpp"
#include "perfmap/profile/module.hpp"

namespace perfmap {

/// The rules of Arm's exception tables (.ARM.exidx, .ARM.extab) for the function that covers the
/// address. They hold at calls: in a prologue and an epilogue they are wrong. Nothing if there are
/// none, if they cannot be expressed as offsets from one register, and for functions that the
/// tables exclude from unwinding, most of which are not at the end of a stack. O(log functions).
/// Source: Exception Handling ABI for the Arm Architecture, 6, 7 and 10.
std::optional<CfiRow> arm_table_row(const Module& module, Address vaddr);

}  // namespace perfmap
