#pragma once

#include <cstdint>
#include <optional>

namespace perfmap {

/// Machines whose user registers a perf event can sample.
enum class Machine : std::uint8_t { x86_64, x86, aarch64, arm };

/// The machine of an ELF file's e_machine (EM_X86_64 and so on), where it is one of these.
constexpr std::optional<Machine> machine_of(std::uint16_t e_machine) noexcept {
  switch (e_machine) {
    case 62: return Machine::x86_64;
    case 3: return Machine::x86;
    case 183: return Machine::aarch64;
    case 40: return Machine::arm;
    default: return std::nullopt;
  }
}

/// What perf_event_attr::sample_regs_user should be for stacks to be unwound: of each machine, on
/// any host, as a recording may come from elsewhere. Bit n is register n of that machine's enum in
/// Linux, arch/*/include/uapi/asm/perf_regs.h.
///
/// x86-64: ax to sp, ip and r8 to r15; x86 (i386): ax to sp and ip; aarch64: x19 to x29, lr,
/// sp and pc, which are those that a callee preserves; arm: r0 to pc.
constexpr std::uint64_t preferred_regs_mask(Machine machine) noexcept {
  switch (machine) {
    case Machine::x86_64: return 0xff01ff;
    case Machine::x86: return 0x1ff;
    case Machine::aarch64: return 0x1fff80000;
    case Machine::arm: return 0xffff;
  }
  return 0;
}

}  // namespace perfmap
