// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dwarf/cfi_program.hpp"

namespace perfmap {

/// The rules at the end of `code`, which begins where its function begins: from the instructions
/// that move the stack pointer and save registers. Debian's libraries for RISC-V have no rules.
/// Branches are not followed: code after a return is taken for the body of the function. Nothing if
/// the stack pointer is moved by a number that is not in the instruction. O(bytes).
/// Source: The RISC-V Instruction Set Manual, volume I, 2.4, 2.6 and 26.
std::optional<CfiRules> riscv_prologue_rules(std::string_view code) noexcept;

}  // namespace perfmap
