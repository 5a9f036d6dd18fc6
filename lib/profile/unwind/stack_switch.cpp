// SPDX-License-Identifier: MIT
#include "unwind/stack_switch.hpp"

#include <algorithm>
#include <array>

#include "unwind/calls.hpp"

namespace perfmap {
namespace {

using namespace std::string_view_literals;

struct CoroutineRoot {
  Machine machine;
  std::string_view before;
  std::string_view begin;
  std::size_t skipped;  // bytes of an address
  std::string_view end;
};

/// Sources: glibc, sysdeps/unix/sysv/linux/x86_64/__start_context.S and i386/makecontext.S;
/// Boost.Context, src/asm/make_x86_64_sysv_elf_gas.S.
constexpr std::array<CoroutineRoot, 3> kRoots = {{
    // mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je
    {Machine::x86_64, ""sv, "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74"sv, 0, ""sv},
    // lea (%esp,%ebx,4),%esp; cmpl $0,(%esp); je
    {Machine::x86, ""sv, "\x8d\x24\x9c\x83\x3c\x24\0\x74"sv, 0, ""sv},
    // push %rbp; jmp *%rbx; and then: xor %rdi,%rdi; call _exit; hlt
    {Machine::x86_64, "\x55\xff\xe3"sv, "\x48\x31\xff\xe8"sv, 4, "\xf4"sv},
}};

/// Source: Go, src/runtime/asm_amd64.s, asm_arm64.s, sys_linux_amd64.s and sys_linux_arm64.s,
/// time_linux_amd64.s. Each calls on the thread's stack, except when it is called there.
///
/// A goroutine that mcall() left may be running again in another thread.
constexpr std::array<StackSwitch, 7> kSwitches = {{
    {"runtime.systemstack", true, true},
    {"runtime.mcall", true, false},
    {"runtime.morestack", false, true},
    {"runtime.asmcgocall", true, true},
    {"runtime.nanotime1", true, true},
    {"runtime.walltime", true, true},
    {"time.now", true, true},
}};

bool is_go(const Module& module) noexcept {
  return module.find_section(".note.go.buildid") != nullptr ||
         module.find_section(".go.buildinfo") != nullptr;
}

/// The function at an address of a Go program, if it is one of those; else nullptr.
const StackSwitch* switch_at(const Module& module, Address vaddr) {
  const auto symbol = module.find_symbol(vaddr);
  if (!symbol) return nullptr;
  std::string_view name = symbol->name;
  if (const std::string_view abi = ".abi0"sv; name.ends_with(abi)) name.remove_suffix(abi.size());
  const auto found = std::ranges::find(kSwitches, name, &StackSwitch::function);
  return found == kSwitches.end() ? nullptr : &*found;
}

/// Whether the call that ends the code has its target in a register.
bool is_indirect_call(Machine machine, std::string_view code) noexcept {
  if (machine == Machine::x86_64) {  // call *%rax to *%rdi
    return code.size() >= 2 && code[code.size() - 2] == '\xff' &&
           (static_cast<unsigned char>(code.back()) & 0xf8U) == 0xd0;
  }
  // blr; only aarch64 is left.
  return code.size() >= 4 && code.ends_with('\xd6') && code[code.size() - 2] == '\x3f';
}

constexpr std::string_view kStoreFp = "\x48\x89\x6c\x24"sv;        // mov %rbp,N(%rsp)
constexpr std::string_view kLoadFp = "\x48\x8b\x6c\x24"sv;         // mov N(%rsp),%rbp
constexpr std::string_view kMoveSp = "\x48\x8d\x64\x24"sv;         // lea N(%rsp),%rsp
constexpr std::string_view kLeave = "\x48\x89\xe0\x48\x89\xfc"sv;  // mov %rsp,%rax; mov %rdi,%rsp
// mov %rsi,%rdx; mov %rax,%rdi; jmp *%r8
constexpr std::string_view kJump = "\x48\x89\xf2\x48\x89\xc7\x41\xff\xe0"sv;

/// Of the last such instruction, which ends with a byte of it.
std::optional<std::int64_t> displacement(std::string_view code, std::string_view instruction) {
  const std::size_t at = code.rfind(instruction);
  if (at == std::string_view::npos || at + instruction.size() >= code.size()) return std::nullopt;
  return static_cast<signed char>(code[at + instruction.size()]);
}

/// `first` and `second` are one after the other in memory.
std::string_view joined(std::string_view first, std::string_view second) noexcept {
  if (first.data() == nullptr || first.data() + first.size() != second.data()) return second;
  return {first.data(), first.size() + second.size()};
}

}  // namespace

bool is_coroutine_root(Machine machine, std::string_view before, std::string_view after) noexcept {
  return std::ranges::any_of(kRoots, [&](const CoroutineRoot& one) {
    const std::size_t rest = one.begin.size() + one.skipped;
    return one.machine == machine && before.ends_with(one.before) && after.starts_with(one.begin) &&
           after.size() >= rest && after.substr(rest).starts_with(one.end);
  });
}

std::optional<LeafFrame> fiber_switch_frame(Machine machine, const CodeAround& code) noexcept {
  if (machine != Machine::x86_64) return std::nullopt;
  constexpr std::size_t kLea = 5, kInstruction = 3;
  constexpr std::uint64_t kWord = 8;
  const std::string_view all = joined(code.before, code.after);
  const std::size_t here = all.size() - code.after.size();
  const auto from = [&](std::string_view what, std::size_t part) {
    return all.find(what, here - std::min(here, part));
  };
  const auto saved_at = [](std::optional<std::int64_t> fp) {
    return fp && *fp >= 0 ? std::optional(static_cast<std::uint64_t>(*fp)) : std::nullopt;
  };
  const std::size_t leave = from(kLeave, kInstruction);
  const std::size_t jump = from(kJump, 2 * kInstruction);
  LeafFrame frame{0, false, kWord, std::nullopt, false};
  if (leave < jump) {
    // Nothing is saved yet if the instruction that makes room comes after this one.
    const auto room = displacement(all.substr(here, leave - std::min(here, leave)), kMoveSp);
    if (room && *room < 0) return frame;
    const auto fp = saved_at(displacement(all.substr(0, leave), kStoreFp));
    if (!fp) return std::nullopt;
    frame.return_at = *fp + kWord;
    frame.popped = *fp + 2 * kWord;
    return frame;
  }
  if (jump == std::string_view::npos || jump < kLea) return std::nullopt;
  const auto fp = saved_at(displacement(all.substr(0, jump), kLoadFp));
  const auto moved = displacement(all.substr(jump - kLea, kLea), kMoveSp);
  if (!fp || !moved) return std::nullopt;
  if (here + kLea <= jump) {
    frame.return_at = *fp + kWord;
    frame.popped = *fp + 2 * kWord;
    frame.saved_fp = fp;
  } else if (*moved != static_cast<std::int64_t>(*fp + kWord)) {
    // jump_fcontext() has popped the return address; ontop_fcontext() leaves it to its callee.
    constexpr std::uint8_t kR8 = 8;
    frame.popped = 0;
    frame.return_register = kR8;
  }
  return frame;
}

std::optional<StackSwitch> stack_switch(const Module& module, Machine machine, Address vaddr) {
  if (machine != Machine::x86_64 && machine != Machine::aarch64) return std::nullopt;
  constexpr std::size_t kLongest = 8;
  const std::string_view code = module.bytes_at(vaddr + 1 - kLongest).substr(0, kLongest);
  if (code.size() < kLongest || !ends_with_call(machine, code).value_or(false) || !is_go(module))
    return std::nullopt;
  const StackSwitch* const found = switch_at(module, vaddr);
  if (found == nullptr || (found->is_indirect && !is_indirect_call(machine, code)))
    return std::nullopt;
  StackSwitch result = *found;
  // Go's aarch64 code does not keep it everywhere.
  result.keeps_fp = result.keeps_fp && machine == Machine::x86_64;
  return result;
}

bool switches_stacks(const Module& module, Machine machine, Address vaddr) {
  return (machine == Machine::x86_64 || machine == Machine::aarch64) && is_go(module) &&
         switch_at(module, vaddr) != nullptr;
}

}  // namespace perfmap
