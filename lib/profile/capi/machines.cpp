// SPDX-License-Identifier: MIT
#include "base/machines.hpp"

#include <bit>

#include "capi/handles.hpp"
#include "perfmap/profile/unwinder.hpp"

using namespace perfmap::capi;

uint64_t perfmap_preferred_regs_mask(uint32_t machine) {
  const perfmap::MachineInfo* const known = perfmap::find_machine(machine);
  return known == nullptr ? 0 : known->sampled;
}

uint32_t perfmap_machine_from_uname(const char* name) {
  if (name == nullptr) return 0;
  const perfmap::MachineInfo* const known = perfmap::find_machine(std::string_view(name));
  return known == nullptr ? 0 : known->elf;
}

perfmap_status perfmap_machine_get(uint32_t machine, perfmap_machine* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const perfmap::MachineInfo* const known = perfmap::find_machine(machine);
  if (known == nullptr) return PERFMAP_E_NOT_FOUND;
  perfmap_machine facts{};
  facts.machine = known->elf;
  facts.compat = known->compat;
  facts.is_unwound = known->is_unwound ? 1 : 0;
  facts.register_count = static_cast<uint32_t>(std::popcount(known->sampled));
  facts.register_mask = known->sampled;
  facts.sp_register = known->perf_sp;
  facts.pc_register = known->sampled != 0 ? known->perf_pc : -1;
  facts.sp_dwarf_register = known->dwarf_sp;
  copy_out(facts, out);
  return PERFMAP_OK;
}

int32_t perfmap_register_place(uint64_t register_mask, int32_t number) {
  if (number < 0 || number > 63 || (register_mask >> number & 1) == 0) return -1;
  return std::popcount(register_mask & ((uint64_t{1} << number) - 1));
}
