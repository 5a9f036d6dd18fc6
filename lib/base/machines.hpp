// The table of machines. Part of both libraries.
#pragma once

#include <array>
#include <cstdint>
#include <elf.h>
#include <string_view>

namespace perfmap {

struct MachineInfo {
  std::uint16_t elf = EM_NONE;  ///< e_machine of ELF files
  /// Beginnings of the names that uname(2), and PyPy's logs, have for it.
  std::array<std::string_view, 5> names = {};
  std::uint16_t compat = EM_NONE;  ///< whose code it runs, too
  /// Addresses always have 32 bits. MIPS, RISC-V and S/390 use one number for both sizes.
  bool is_32 = false;
  /// Registers of a perf sample that unwinding needs; 0 if it cannot unwind. Bit n is register n of
  /// the enum in Linux, arch/*/include/uapi/asm/perf_regs.h.
  std::uint64_t sampled = 0;
};

/// Machines that run Linux. A name that begins another one comes after it. Source: elf.h.
inline constexpr std::array<MachineInfo, 19> kMachines = {{
    {EM_X86_64, {"x86_64"}, EM_386, false, 0xff01ff},  // ax to sp, ip, r8 to r15
    {EM_386, {"i386", "i486", "i586", "i686", "x86"}, EM_NONE, true, 0x1ff},  // ax to sp, ip
    {EM_AARCH64, {"aarch64", "arm64"}, EM_ARM, false, 0x1fff80000},  // x19 to x29, lr, sp, pc
    {EM_ARM, {"arm"}, EM_NONE, true, 0xffff},                        // r0 to pc
    {EM_RISCV, {"riscv"}},
    {EM_S390, {"s390"}},
    {EM_PPC64, {"ppc64"}, EM_PPC},
    {EM_PPC, {"ppc"}, EM_NONE, true},
    {EM_LOONGARCH, {"loongarch"}},
    {EM_MIPS, {"mips"}},
    {EM_SPARCV9, {"sparc64"}, EM_SPARC},
    {EM_SPARC, {"sparc"}, EM_NONE, true},
    {EM_SPARC32PLUS, {}, EM_NONE, true},
    {EM_68K, {"m68k"}, EM_NONE, true},
    {EM_PARISC, {"parisc"}, EM_NONE, true},
    {EM_SH, {"sh"}, EM_NONE, true},
    {EM_IA_64, {"ia64"}},
    {EM_ARCV2, {"arc"}, EM_NONE, true},
    {EM_XTENSA, {"xtensa"}, EM_NONE, true},
}};

/// Null if there is none.
constexpr const MachineInfo* find_machine(std::uint32_t elf) noexcept {
  for (const MachineInfo& machine : kMachines) {
    if (machine.elf == elf) return &machine;
  }
  return nullptr;
}

/// The machine that uname(2) calls so; null if unknown.
constexpr const MachineInfo* find_machine(std::string_view name) noexcept {
  for (const MachineInfo& machine : kMachines) {
    for (const std::string_view beginning : machine.names) {
      if (!beginning.empty() && name.starts_with(beginning)) return &machine;
    }
  }
  return nullptr;
}

/// Whether code of that ELF machine runs on this one.
constexpr bool runs(const MachineInfo& machine, std::uint32_t elf) noexcept {
  return elf != EM_NONE && (elf == machine.elf || elf == machine.compat);
}

}  // namespace perfmap
