// SPDX-License-Identifier: MIT
#include "unwind/leaf.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "unwind/stack_switch.hpp"

namespace perfmap {
namespace {

using namespace std::string_view_literals;

/// x86-64 and i386 differ in the size of a word, and in the prefix of instructions on pointers.
struct X86Words {
  std::uint64_t size;
  std::string_view prefix;

  LeafFrame nothing_pushed() const noexcept { return {0, false, size, std::nullopt, false}; }
  LeafFrame frame_pointer_pushed() const noexcept { return {size, false, 2 * size, 0, false}; }
};
constexpr X86Words kX86_64 = {8, "\x48"sv};
constexpr X86Words kX86 = {4, ""sv};

/// mov %rsp,%rbp, in either encoding.
bool begins_with_mov_fp(const X86Words& words, std::string_view code) noexcept {
  if (!code.starts_with(words.prefix)) return false;
  code.remove_prefix(words.prefix.size());
  return code.starts_with("\x89\xe5"sv) || code.starts_with("\x8b\xec"sv);
}

/// push %rbp; mov %rsp,%rbp.
bool is_prologue(const X86Words& words, std::string_view code) noexcept {
  return code.starts_with('\x55') && begins_with_mov_fp(words, code.substr(1));
}

bool has_prologue(const X86Words& words, std::string_view code) noexcept {
  constexpr std::size_t kNear = 48;
  for (std::size_t i = 0; i < std::min(code.size(), kNear); ++i) {
    if (is_prologue(words, code.substr(i))) return true;
  }
  return false;
}

/// A function may do some work before it sets up its frame, so the prologue may follow.
bool has_prologue_ahead(const X86Words& words, const CodeAround& code) noexcept {
  constexpr std::uint64_t kFarFromBegin = 96;
  return code.offset && *code.offset < kFarFromBegin && has_prologue(words, code.after);
}

/// Padding between functions, or an instruction that ends the one before.
bool is_padding(std::string_view before) noexcept {
  return before.empty() || before.ends_with('\xcc') || before.ends_with('\x90') ||
         before.ends_with('\xc3') || before.ends_with('\0');
}

/// Entries of a PLT: jmp *GOT(%rip), or on i386 also jmp *GOT(%ebx); push $n; jmp PLT0, with endbr
/// or bnd prefixes.
std::optional<LeafFrame> plt_entry(const X86Words& words, const CodeAround& code) noexcept {
  LeafFrame frame = words.nothing_pushed();
  frame.is_plt = true;
  std::string_view after = code.after;
  if (after.starts_with("\xf3\x0f\x1e\xfa"sv) || after.starts_with("\xf3\x0f\x1e\xfb"sv))
    after.remove_prefix(4);
  if (after.starts_with('\xf2')) after.remove_prefix(1);
  const bool is_jump =
      after.starts_with("\xff\x25"sv) || (words.size == 4 && after.starts_with("\xff\xa3"sv));
  if (is_jump || after.starts_with('\x68')) return frame;
  const bool is_pushed = code.before.size() >= 5 && code.before[code.before.size() - 5] == '\x68';
  if (!is_pushed || !after.starts_with('\xe9')) return std::nullopt;
  frame.return_at = words.size;
  frame.popped = 2 * words.size;
  return frame;
}

std::optional<LeafFrame> leaf_frame_x86(Machine machine, const X86Words& words,
                                        const CodeAround& code) noexcept {
  const std::string_view after = code.after;
  const auto begins_with_return = [](std::string_view from) {
    return from.starts_with('\xc3') || from.starts_with('\xc2');
  };
  if (code.offset == 0 || begins_with_return(after)) return words.nothing_pushed();
  if (after.starts_with('\x5d') && begins_with_return(after.substr(1)))
    return words.frame_pointer_pushed();
  if (is_prologue(words, after)) return words.nothing_pushed();
  if (code.before.ends_with('\x55') && begins_with_mov_fp(words, after))
    return words.frame_pointer_pushed();
  if (const auto plt = plt_entry(words, code)) return plt;
  if (const auto fiber = fiber_switch_frame(machine, code)) return fiber;
  // __x86.get_pc_thunk.*: mov (%esp),%reg; ret.
  const bool is_thunk =
      after.size() >= 4 && after[0] == '\x8b' && after.substr(2, 2) == "\x24\xc3"sv;
  if (words.size == 4 && is_thunk) return words.nothing_pushed();
  if (has_prologue_ahead(words, code)) return words.nothing_pushed();
  // A map gives a function's begin but not its code; most functions push %rbp first.
  if (after.empty() && code.offset == 1) return words.frame_pointer_pushed();
  return std::nullopt;
}

std::uint32_t word_at(std::string_view code, std::size_t at) noexcept {
  std::uint32_t word = 0;
  if (at <= code.size() && code.size() - at >= sizeof word)
    std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

/// stp x29, x30, [sp, #-N]!
constexpr bool is_push_of_frame(std::uint32_t word) noexcept {
  return (word & 0xffe07fff) == 0xa9a07bfd;
}
constexpr std::uint64_t pushed_bytes(std::uint32_t word) noexcept {
  const auto scaled = static_cast<std::int32_t>(word << 10) >> 25;  // bits 15 to 21, signed
  return static_cast<std::uint64_t>(-scaled * 8);
}

constexpr LeafFrame kInLinkRegister{0, true, 0, std::nullopt, false};

std::optional<LeafFrame> leaf_frame_aarch64(const CodeAround& code) noexcept {
  constexpr std::uint32_t kReturn = 0xd65f03c0, kMoveFp = 0x910003fd;
  constexpr std::uint32_t kLandingPad = 0xd503245f, kSignReturn = 0xd503233f;
  const std::uint32_t next = word_at(code.after, 0);
  const bool is_begin = code.offset == 0 || next == kLandingPad || next == kSignReturn;
  const bool is_end = returns_to_link_register(Machine::aarch64, code.after);
  if (is_begin || is_end || is_push_of_frame(next)) return kInLinkRegister;
  const std::uint32_t last =
      code.before.size() >= 4 ? word_at(code.before, code.before.size() - 4) : 0;
  if (next == kMoveFp && is_push_of_frame(last)) {
    return LeafFrame{8, false, pushed_bytes(last), 0, false};
  }
  for (std::size_t at = 4; code.offset && *code.offset < 32 && at < 32; at += 4) {
    if (word_at(code.after, at) == kReturn) break;
    if (is_push_of_frame(word_at(code.after, at))) return kInLinkRegister;
  }
  return std::nullopt;
}

/// ret, or the first instruction of a function.
std::optional<LeafFrame> leaf_frame_riscv64(const CodeAround& code) noexcept {
  if (code.offset == 0 || returns_to_link_register(Machine::riscv64, code.after))
    return kInLinkRegister;
  return std::nullopt;
}

/// bx lr, in either instruction set, or the first instruction of a function.
std::optional<LeafFrame> leaf_frame_arm(const CodeAround& code) noexcept {
  if (code.offset == 0 || returns_to_link_register(Machine::arm, code.after))
    return kInLinkRegister;
  return std::nullopt;
}

}  // namespace

bool wants_offset(Machine machine, const CodeAround& code) noexcept {
  switch (machine) {
    case Machine::x86_64: return is_padding(code.before) || has_prologue(kX86_64, code.after);
    case Machine::x86: return is_padding(code.before) || has_prologue(kX86, code.after);
    default: return true;
  }
}

std::optional<LeafFrame> leaf_frame(Machine machine, const CodeAround& code) noexcept {
  switch (machine) {
    case Machine::x86_64: return leaf_frame_x86(machine, kX86_64, code);
    case Machine::x86: return leaf_frame_x86(machine, kX86, code);
    case Machine::aarch64: return leaf_frame_aarch64(code);
    case Machine::riscv64: return leaf_frame_riscv64(code);
    case Machine::arm: return leaf_frame_arm(code);
    default: return std::nullopt;
  }
}

bool has_no_frame_yet(Machine machine, std::string_view code) noexcept {
  if (machine != Machine::x86_64 && machine != Machine::x86) return false;
  const X86Words& words = machine == Machine::x86 ? kX86 : kX86_64;
  for (std::size_t i = code.find('\x55'); i != std::string_view::npos;
       i = code.find('\x55', i + 1)) {
    if (is_prologue(words, code.substr(i))) return false;
  }
  return true;
}

bool returns_to_link_register(Machine machine, std::string_view code) noexcept {
  struct Return {
    Machine machine;
    std::string_view code;
  };
  static constexpr std::array<Return, 7> kReturns = {{
      {Machine::aarch64, "\xc0\x03\x5f\xd6"sv},  // ret
      {Machine::aarch64, "\xff\x0b\x5f\xd6"sv},  // retaa
      {Machine::aarch64, "\xff\x0f\x5f\xd6"sv},  // retab
      {Machine::riscv64, "\x82\x80"sv},
      {Machine::riscv64, "\x67\x80\0\0"sv},
      {Machine::arm, "\x1e\xff\x2f\xe1"sv},  // bx lr
      {Machine::arm, "\x70\x47"sv},
  }};
  return std::any_of(kReturns.begin(), kReturns.end(), [&](const Return& one) {
    return one.machine == machine && code.starts_with(one.code);
  });
}

const ElfSectionFacts* plt_section(const Module& module, Address vaddr) noexcept {
  for (const std::string_view name : {".plt"sv, ".iplt"sv, ".plt.sec"sv, ".plt.got"sv}) {
    const ElfSectionFacts* const section = module.find_section(name);
    if (section != nullptr && vaddr - section->address < section->size) return section;
  }
  return nullptr;
}

std::optional<LeafFrame> plt_frame(Machine machine, const CodeRegion& region, Address pc) noexcept {
  // aarch64's first entry: stp x16,x30,[sp,#-16]!, also after a landing pad.
  constexpr std::uint32_t kPush = 0xa9bf7bf0;
  constexpr std::uint64_t kFirstEntry = 32;
  if (region.module == nullptr) return std::nullopt;
  const Address vaddr = pc + region.delta;
  const ElfSectionFacts* const section = plt_section(*region.module, vaddr);
  if (section == nullptr) return std::nullopt;
  LeafFrame frame = kInLinkRegister;
  frame.is_plt = true;
  const std::uint64_t done = vaddr - section->address;
  if (machine != Machine::aarch64 || done >= kFirstEntry) return frame;
  const std::string_view code = region.module->bytes_at(section->address);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}}) {
    if (done > at && word_at(code, at) == kPush) frame.popped = 16;
  }
  return frame;
}

}  // namespace perfmap
