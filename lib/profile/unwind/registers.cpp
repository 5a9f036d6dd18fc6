// SPDX-License-Identifier: MIT
#include "base/machines.hpp"
#include "unwind/machine_registers.hpp"

namespace perfmap {
namespace {

template <class Arch>
constexpr bool agrees() {
  const MachineInfo& machine = *find_machine(Arch::kElfMachine);
  const auto sp = static_cast<std::size_t>(machine.perf_sp);
  return machine.is_unwound && machine.perf_pc == Arch::kPerfPc && machine.dwarf_sp == Arch::kSp &&
         Arch::kOfPerf[sp] == Arch::kSp;
}
static_assert(agrees<X86_64>() && agrees<X86>() && agrees<Aarch64>() && agrees<Riscv64>() &&
              agrees<Arm>());

template <class Arch>
std::optional<unsigned> number_of(unsigned dwarf) noexcept {
  for (unsigned i = 0; i < Arch::kOfPerf.size(); ++i) {
    if (Arch::kOfPerf[i] == dwarf && dwarf < kMaxRegisters) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<unsigned> perf_register(Machine machine, unsigned dwarf) noexcept {
  switch (machine) {
    case Machine::x86_64: return number_of<X86_64>(dwarf);
    case Machine::x86: return number_of<X86>(dwarf);
    case Machine::aarch64: return number_of<Aarch64>(dwarf);
    case Machine::riscv64: return number_of<Riscv64>(dwarf);
    case Machine::arm: return number_of<Arm>(dwarf);
    default: return std::nullopt;
  }
}

}  // namespace perfmap
