// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string_view>

#include "dwarf/cfi_program.hpp"
#include "perfmap/profile/unwinder.hpp"

namespace perfmap {

/// The registers of a thread by DWARF number, and which of them are known.
struct DwarfRegisters {
  std::array<std::uint64_t, kMaxRegisters> values = {};
  std::uint64_t known = 0;  ///< one bit per register

  bool has(unsigned number) const noexcept { return (known >> number & 1) != 0; }
  void set(unsigned number, std::uint64_t value) noexcept {
    values[number] = value;
    known |= std::uint64_t{1} << number;
  }
  void forget(unsigned number) noexcept { known &= ~(std::uint64_t{1} << number); }
};

/// Not a DWARF register that is kept.
inline constexpr std::uint8_t kNone = kMaxRegisters;

/// What a frame pointer points to: the caller's frame pointer and the return address, as offsets.
struct FrameRecord {
  std::int8_t fp = 0;
  std::int8_t return_address = 0;
  std::int8_t end = 0;  ///< the caller's stack pointer, at least
};

/// A word near the registers that the kernel saved for a signal handler, which has a known value.
template <class Word>
struct ContextMark {
  std::int16_t offset = 0;  ///< from the registers
  Word mask = 0;
  Word value = 0;
};

// One struct for each machine whose stacks can be unwound:
//
// Word         a word of its stack
// kFp, kSp, …  DWARF numbers; kSaved: callee-saved registers except the stack pointer
// kPerfPc      of the enum in Linux, arch/*/include/uapi/asm/perf_regs.h
// kOfPerf      the DWARF number of perf's register, or kNone
// kOfContext   the DWARF numbers of the words in the kernel's sigcontext, or kNone
// kMarks       what tells a sigcontext from other memory
// kSignalStack the place of sigaltstack(2)'s memory, in the kernel's ucontext, from the registers
// kHasLinkRegister  calls do not push: the return address is in kLink

/// Sources: System V ABI, x86-64 supplement, figure 3.36; Linux,
/// arch/x86/include/uapi/asm/perf_regs.h and sigcontext.h.
struct X86_64 {
  using Word = std::uint64_t;
  static constexpr Machine kMachine = Machine::x86_64;
  static constexpr std::uint16_t kElfMachine = EM_X86_64;
  static constexpr unsigned kFp = 6, kSp = 7, kPc = 16;
  static constexpr unsigned kPerfPc = 8;
  static constexpr std::array<std::uint8_t, 6> kSaved = {3, 6, 12, 13, 14, 15};
  static constexpr std::array<std::uint8_t, 24> kOfPerf = {
      0,     3,     2,     1,     4, 5, 6,  7,  16, kNone, kNone, kNone,
      kNone, kNone, kNone, kNone, 8, 9, 10, 11, 12, 13,    14,    15};
  static constexpr std::array<std::uint8_t, 17> kOfContext = {8, 9, 10, 11, 12, 13, 14, 15, 5,
                                                              4, 6, 3,  1,  0,  2,  7,  16};
  static constexpr std::array<ContextMark<Word>, 1> kMarks = {{{144, 0xffff, 0x33}}};  // cs
  static constexpr std::int64_t kSignalStack = -24;
  static constexpr bool kHasLinkRegister = false;
  static constexpr FrameRecord kRecord = {0, 8, 16};
};

/// Sources: System V ABI, Intel386 supplement, table 2.14; Linux, as above.
struct X86 {
  using Word = std::uint32_t;
  static constexpr Machine kMachine = Machine::x86;
  static constexpr std::uint16_t kElfMachine = EM_386;
  static constexpr unsigned kFp = 5, kSp = 4, kPc = 8;
  static constexpr unsigned kPerfPc = 8;
  static constexpr std::array<std::uint8_t, 4> kSaved = {3, 5, 6, 7};
  static constexpr std::array<std::uint8_t, 9> kOfPerf = {0, 3, 1, 2, 6, 7, 5, 4, 8};
  /// gs, fs, es and ds come first; the number of the trap and its error code are before the pc.
  static constexpr std::array<std::uint8_t, 15> kOfContext = {
      kNone, kNone, kNone, kNone, 7, 6, 5, 4, 3, 2, 1, 0, kNone, kNone, 8};
  /// cs is 0x23 in a process of a 64-bit kernel, else 0x73.
  static constexpr std::array<ContextMark<Word>, 1> kMarks = {{{60, 0xffaf, 0x23}}};
  static constexpr std::int64_t kSignalStack = -12;
  static constexpr bool kHasLinkRegister = false;
  static constexpr FrameRecord kRecord = {0, 4, 8};
};

/// Sources: DWARF for the Arm 64-bit Architecture, 4.1; Linux,
/// arch/arm64/include/uapi/asm/perf_regs.h and sigcontext.h.
struct Aarch64 {
  using Word = std::uint64_t;
  static constexpr Machine kMachine = Machine::aarch64;
  static constexpr std::uint16_t kElfMachine = EM_AARCH64;
  static constexpr unsigned kFp = 29, kSp = 31, kLink = 30, kPc = 32;
  static constexpr unsigned kPerfPc = 32;
  static constexpr std::array<std::uint8_t, 11> kSaved = {19, 20, 21, 22, 23, 24,
                                                          25, 26, 27, 28, 29};
  static constexpr std::array<std::uint8_t, 33> kOfPerf = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
  static constexpr std::array<std::uint8_t, 33> kOfContext = kOfPerf;
  /// FPSIMD_MAGIC, of the first of the records that follow.
  static constexpr std::array<ContextMark<Word>, 1> kMarks = {{{280, 0xffff'ffff, 0x4650'8001}}};
  static constexpr std::int64_t kSignalStack = -168;
  static constexpr bool kHasLinkRegister = true;
  static constexpr FrameRecord kRecord = {0, 8, 16};
};

/// Sources: RISC-V ABIs Specification, "DWARF Register Numbers"; Linux,
/// arch/riscv/include/uapi/asm/perf_regs.h and ptrace.h: the pc has the place of x0, which is
/// always 0. DWARF has no number for the pc: we use a free one.
struct Riscv64 {
  using Word = std::uint64_t;
  static constexpr Machine kMachine = Machine::riscv64;
  static constexpr std::uint16_t kElfMachine = EM_RISCV;
  static constexpr unsigned kFp = 8, kSp = 2, kLink = 1, kPc = 32;
  static constexpr unsigned kPerfPc = 0;
  static constexpr std::array<std::uint8_t, 12> kSaved = {8,  9,  18, 19, 20, 21,
                                                          22, 23, 24, 25, 26, 27};
  static constexpr std::array<std::uint8_t, 32> kOfPerf = {
      32, 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  static constexpr std::array<std::uint8_t, 32> kOfContext = kOfPerf;
  /// The number of the signal, without an error number after it, and uc_link.
  static constexpr std::array<ContextMark<Word>, 2> kMarks = {
      {{-304, ~Word{0x7f}, 0}, {-168, ~Word{0}, 0}}};
  static constexpr std::int64_t kSignalStack = -160;
  static constexpr bool kHasLinkRegister = true;
  static constexpr FrameRecord kRecord = {-16, -8, 0};
};

/// Sources: DWARF for the Arm Architecture, 4.1; Linux, arch/arm/include/uapi/asm/perf_regs.h and
/// sigcontext.h. The frame record is that of gcc's Arm code: Thumb code has others, or none.
struct Arm {
  using Word = std::uint32_t;
  static constexpr Machine kMachine = Machine::arm;
  static constexpr std::uint16_t kElfMachine = EM_ARM;
  static constexpr unsigned kFp = 11, kSp = 13, kLink = 14, kPc = 15;
  static constexpr unsigned kPerfPc = 15;
  static constexpr std::array<std::uint8_t, 8> kSaved = {4, 5, 6, 7, 8, 9, 10, 11};
  static constexpr std::array<std::uint8_t, 16> kOfPerf = {0, 1, 2,  3,  4,  5,  6,  7,
                                                           8, 9, 10, 11, 12, 13, 14, 15};
  static constexpr std::array<std::uint8_t, 16> kOfContext = kOfPerf;
  /// uc_link, and the processor's mode.
  static constexpr std::array<ContextMark<Word>, 2> kMarks = {
      {{-28, ~Word{0}, 0}, {64, 0x1df, 0x10}}};
  static constexpr std::int64_t kSignalStack = -24;
  static constexpr bool kHasLinkRegister = true;
  static constexpr FrameRecord kRecord = {-4, 0, 4};
};

/// Computed addresses and sampled registers may have more bits than the machine.
template <class Arch>
constexpr std::uint64_t word(std::uint64_t value) noexcept {
  return static_cast<typename Arch::Word>(value);
}

template <class Arch>
DwarfRegisters dwarf_registers(const UserRegisters& registers) noexcept {
  DwarfRegisters result;
  for (unsigned i = 0; i < Arch::kOfPerf.size(); ++i) {
    if (Arch::kOfPerf[i] != kNone && registers.has(i))
      result.set(Arch::kOfPerf[i], word<Arch>(registers.values[i]));
  }
  // An arm64 kernel copies these registers of an Arm process to where its own are.
  if constexpr (Arch::kMachine == Machine::arm) {
    constexpr std::array<unsigned, 3> kOwn = {13, 14, 15}, kCopy = {31, 30, 32};
    for (std::size_t i = 0; i < kOwn.size(); ++i) {
      if (!result.has(kOwn[i]) && registers.has(kCopy[i]))
        result.set(kOwn[i], word<Arch>(registers.values[kCopy[i]]));
    }
  }
  return result;
}

/// An offset may be negative; the sum wraps.
constexpr Address moved(Address base, std::int64_t offset) noexcept {
  return base + static_cast<Address>(offset);
}

/// The recorded copy of a stack; the only memory that unwinding reads.
class StackMemory {
 public:
  StackMemory(Address begin, std::string_view bytes, bool is_full) noexcept
      : begin_(begin), bytes_(bytes), beyond_(beyond(begin + bytes.size(), bytes, is_full)) {}

  template <class Word>
  bool read(Address address, std::uint64_t& value) const noexcept {
    const std::uint64_t at = address - begin_;
    if (at >= bytes_.size() || bytes_.size() - at < sizeof(Word)) return false;
    Word word = 0;
    std::memcpy(&word, bytes_.data() + at, sizeof word);
    value = word;
    return true;
  }
  /// Whether a read of a word at this address failed because the copy was full, or because the
  /// kernel stopped at a page that it could not read.
  template <class Word>
  bool was_cut_before(Address address) const noexcept {
    const Address end = begin_ + bytes_.size();
    return address - begin_ + sizeof(Word) > bytes_.size() &&
           address + sizeof(Word) - end < beyond_;
  }
  bool holds(Address address, std::uint64_t size) const noexcept {
    const std::uint64_t at = address - begin_;
    return at <= bytes_.size() && bytes_.size() - at >= size;
  }
  /// Prefetches the memory that the frames from there on may be read from. The place of a frame
  /// depends on the frame below it, and waiting for each of them takes most of the time.
  void approach(Address address) noexcept {
    constexpr std::uint64_t kAhead = 1024, kLine = 64;
    const std::uint64_t at = address - begin_;
    if (at >= bytes_.size()) return;
    const std::uint64_t until = std::min<std::uint64_t>(bytes_.size(), at + kAhead);
    for (fetched_ = std::max(fetched_, at); fetched_ < until; fetched_ += kLine)
      __builtin_prefetch(bytes_.data() + fetched_);
  }
  /// Requires `holds(address, size)`.
  void copy(Address address, void* to, std::size_t size) const noexcept {
    std::memcpy(to, bytes_.data() + (address - begin_), size);
  }

 private:
  /// How far beyond its end the stack goes on. A missing page may be the first one after a complete
  /// stack: then only the range that the next frame may reach counts.
  static constexpr std::uint64_t beyond(Address end, std::string_view bytes,
                                        bool is_full) noexcept {
    constexpr std::uint64_t kMaxStack = std::uint64_t{1} << 30, kMaxFrame = std::uint64_t{1} << 20;
    constexpr Address kSmallestPage = 4096;
    if (is_full) return kMaxStack;
    return !bytes.empty() && end % kSmallestPage == 0 ? kMaxFrame : 0;
  }

  Address begin_;
  std::string_view bytes_;
  std::uint64_t beyond_;  ///< see beyond()
  std::uint64_t fetched_ = 0;
};

}  // namespace perfmap
