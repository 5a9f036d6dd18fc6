// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "dwarf/cfi_program.hpp"
#include "unwind/machine_registers.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap {

/// The caller's registers, computed from general rules.
struct RowStep {
  DwarfRegisters registers;
  std::uint64_t return_address = 0;
  Address sp = 0;
  bool has_caller = false;
  /// Where the return address should be, if that memory is unknown.
  std::optional<Address> unreadable;
};

/// Instantiated for each machine.
template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space);

}  // namespace perfmap
