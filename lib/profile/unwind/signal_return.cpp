// SPDX-License-Identifier: MIT
#include "unwind/signal_return.hpp"

#include <algorithm>
#include <array>

namespace perfmap {
namespace {

using namespace std::string_view_literals;

struct SignalReturn {
  Machine machine;
  std::string_view code;              // up to the system call
  std::array<std::uint8_t, 3> parts;  // after how many bytes the next instruction begins; 0: none
  SavedContext context;
  std::int8_t popped = 0;  // by the first instruction
};

/// Sources: glibc, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c and arm/sigrestorer.S; musl,
/// src/signal/*/restore.s; Linux, arch/x86/entry/vdso/vdso32/sigreturn.S,
/// arch/arm64/kernel/vdso/sigreturn.S, arch/riscv/kernel/vdso/rt_sigreturn.S, and rt_sigframe in
/// arch/*/kernel/signal.c.
constexpr std::array<SignalReturn, 12> kReturns = {{
    // mov $15,%rax or %eax; syscall
    {Machine::x86_64, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"sv, {7, 9}, {40}},
    {Machine::x86_64, "\xb8\x0f\0\0\0\x0f\x05"sv, {5, 7}, {40}},
    // mov $173,%eax; int $0x80, and pop %eax; mov $119,%eax; int $0x80
    {Machine::x86, "\xb8\xad\0\0\0\xcd\x80"sv, {5, 7}, {20, true}},
    {Machine::x86, "\x58\xb8\x77\0\0\0\xcd\x80"sv, {1, 6, 8}, {4}, 4},
    // mov x8,#139; svc #0
    {Machine::aarch64, "\x68\x11\x80\xd2\x01\0\0\xd4"sv, {4, 8}, {312}},
    // li a7,139; ecall
    {Machine::riscv64, "\x93\x08\xb0\x08\x73\0\0\0"sv, {4, 8}, {304}},
    // mov r7,#173 or #119; svc 0, the same as Thumb code
    {Machine::arm, "\xad\x70\xa0\xe3\0\0\0\xef"sv, {4, 8}, {160}},
    {Machine::arm, "\x77\x70\xa0\xe3\0\0\0\xef"sv, {4, 8}, {32}},
    {Machine::arm, "\x4f\xf0\xad\x07\0\xdf"sv, {4, 6}, {160}},
    {Machine::arm, "\x4f\xf0\x77\x07\0\xdf"sv, {4, 6}, {32}},
    {Machine::arm, "\xad\x27\0\xdf"sv, {2, 4}, {160}},
    {Machine::arm, "\x77\x27\0\xdf"sv, {2, 4}, {32}},
}};

/// Where the registers are when the first instruction was executed.
constexpr SavedContext after_first(const SignalReturn& one) noexcept {
  SavedContext context = one.context;
  context.offset = static_cast<std::int16_t>(context.offset - one.popped);
  return context;
}

}  // namespace

bool is_signal_return(Machine machine, std::string_view code) noexcept {
  return std::any_of(kReturns.begin(), kReturns.end(), [&](const SignalReturn& one) {
    return one.machine == machine && code.starts_with(one.code);
  });
}

std::optional<SignalReturnPlace> find_signal_return(Machine machine, std::string_view before,
                                                    std::string_view after) noexcept {
  for (const SignalReturn& one : kReturns) {
    if (one.machine != machine) continue;
    if (after.starts_with(one.code)) return SignalReturnPlace{one.context, false};
    for (const std::size_t done : one.parts) {
      if (done == 0 || !before.ends_with(one.code.substr(0, done)) ||
          !after.starts_with(one.code.substr(done)))
        continue;
      return SignalReturnPlace{after_first(one), done == one.code.size()};
    }
  }
  return std::nullopt;
}

SavedContexts signal_contexts(Machine machine) noexcept {
  SavedContexts found;
  const auto add = [&](SavedContext context) {
    if (std::find(found.begin(), found.end(), context) == found.end())
      found.all[found.count++] = context;
  };
  for (const SignalReturn& one : kReturns) {
    if (one.machine != machine) continue;
    add(one.context);
    if (one.popped != 0) add(after_first(one));
  }
  return found;
}

}  // namespace perfmap
