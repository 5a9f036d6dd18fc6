// SPDX-License-Identifier: MIT
#include "elf/target.hpp"

#include <elf.h>

#include "base/machines.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {
namespace {

/// The e_flags that readers need to disassemble.
std::uint32_t flags_of(std::uint16_t machine, std::endian order) noexcept {
  if (machine == EM_ARM) return EF_ARM_EABI_VER5;
  if (machine == EM_PPC64 && order == std::endian::little) return 2;  // ABI version 2
  if (machine == EM_RISCV) return EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE;
  return 0;
}

}  // namespace

Target target_of(const std::optional<JitdumpHeader>& header, std::uint16_t machine) noexcept {
  Target target;
  target.machine = machine;
  if (header) target.order = header->order;
  const MachineInfo* const known = find_machine(machine);
  target.is_64 = known == nullptr || !known->is_32;
  target.flags = flags_of(machine, target.order);
  return target;
}

Target target_of(const std::optional<JitdumpHeader>& header) noexcept {
  const bool says = header && header->elf_mach != EM_NONE && header->elf_mach <= UINT16_MAX;
  return target_of(header,
                   static_cast<std::uint16_t>(says ? header->elf_mach : host_elf_machine()));
}

}  // namespace perfmap
