#pragma once

#include <optional>

#include "modules/cfi_rule.hpp"
#include "unwind/code_region.hpp"
#include "unwind/machine_registers.hpp"

namespace perfmap {

/// The caller's registers, by rules of any form.
struct RowStep {
  DwarfRegisters registers;
  std::uint64_t return_address = 0;
  Address sp = 0;
  bool has_caller = false;
  /// Where the return address should have been, and memory is not known.
  std::optional<Address> unreadable;
};

template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space);

}  // namespace perfmap
