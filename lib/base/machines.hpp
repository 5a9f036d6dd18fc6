// SPDX-License-Identifier: MIT
// The table of machines. Part of both libraries.
#pragma once

#include <array>
#include <bit>
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
  /// Registers of a perf sample that unwinding needs; 0 if perf cannot sample them. Bit n is
  /// register n of the enum in Linux, arch/*/include/uapi/asm/perf_regs.h.
  std::uint64_t sampled = 0;
  std::uint8_t perf_pc = 0;  ///< the pc's number there
  bool is_unwound = false;   ///< stacks can be unwound
  std::int8_t perf_sp = -1;  ///< the stack pointer's number there; -1: unknown
  std::int8_t dwarf_sp = -1;
  /// If stacks are not unwound: those that the kernel walks (perf record -g), for the end of a
  /// sentence. Source: Linux, perf_callchain_user() of arch/. Empty: unknown.
  std::string_view kernel_walks = {};
};

/// Machines that run Linux. A name that begins another one comes after it. Source: elf.h.
inline constexpr std::array<MachineInfo, 19> kMachines = {{
    // ax to sp, ip, r8 to r15
    {EM_X86_64, {"x86_64"}, EM_386, false, 0xff01ff, 8, true, 7, 7},
    // ax to sp, ip
    {EM_386, {"i386", "i486", "i586", "i686", "x86"}, EM_NONE, true, 0x1ff, 8, true, 7, 4},
    // x19 to x29, lr, sp, pc, and for an Arm process r0 to r12
    {EM_AARCH64, {"aarch64", "arm64"}, EM_ARM, false, 0x1fff81fff, 32, true, 31, 31},
    // r0 to pc
    {EM_ARM, {"arm"}, EM_NONE, true, 0xffff, 15, true, 13, 13},
    // pc, x1 to x31
    {EM_RISCV, {"riscv64"}, EM_NONE, false, 0xffffffff, 0, true, 2, 2},
    // r0 to r15, f0 to f15, pc
    {EM_S390,
     {"s390"},
     EM_NONE,
     false,
     0x2ffffffff,
     33,
     false,
     15,
     15,
     " of programs that were compiled with -mbackchain"},
    // r0 to r31, nip, link
    {EM_PPC64,
     {"ppc64"},
     EM_PPC,
     false,
     0x11ffffffff,
     32,
     false,
     1,
     1,
     ", which always have a back chain"},
    {EM_PPC, {"ppc"}, EM_NONE, true},
    // pc, r1 to r31
    {EM_LOONGARCH,
     {"loongarch"},
     EM_NONE,
     false,
     0xffffffff,
     0,
     false,
     3,
     3,
     " of programs that were compiled with -fno-omit-frame-pointer"},
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

/// Whether that name is of a big-endian arm ("armv7b") or aarch64 ("aarch64_be"), which has the
/// number of the little-endian one. Source: Linux, arch/arm*/kernel/setup.c, arch/arm64/Makefile.
constexpr bool is_big_endian_arm(std::string_view name) noexcept {
  const bool is_64 = name.starts_with("aarch64") || name.starts_with("arm64");
  return is_64 ? name.ends_with("_be") : name.starts_with("arm") && name.ends_with('b');
}

/// The machine that uname(2) calls so; null if unknown. Also null for riscv32 and big-endian arm
/// and aarch64: only their number is that of a row.
constexpr const MachineInfo* find_machine(std::string_view name) noexcept {
  if (is_big_endian_arm(name)) return nullptr;
  for (const MachineInfo& machine : kMachines) {
    for (const std::string_view beginning : machine.names) {
      if (!beginning.empty() && name.starts_with(beginning)) return &machine;
    }
  }
  return nullptr;
}

/// Whether stacks of a process with such an ELF file can be unwound. Of the machines that are, all
/// are little-endian, and riscv32 has the number of riscv64.
constexpr bool is_unwound(std::uint32_t elf, bool is_64, std::endian order) noexcept {
  const MachineInfo* const machine = find_machine(elf);
  return machine != nullptr && machine->is_unwound && order == std::endian::little &&
         (is_64 || elf != EM_RISCV);
}

/// Whether code of that ELF machine runs on this one.
constexpr bool runs(const MachineInfo& machine, std::uint32_t elf) noexcept {
  return elf != EM_NONE && (elf == machine.elf || elf == machine.compat);
}

}  // namespace perfmap
