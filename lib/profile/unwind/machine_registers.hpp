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

/// Sources: System V ABI, x86-64 supplement, figure 3.36; Linux,
/// arch/x86/include/uapi/asm/perf_regs.h.
struct X86_64 {
  static constexpr Machine kMachine = Machine::x86_64;
  static constexpr std::uint16_t kElfMachine = EM_X86_64;
  static constexpr unsigned kFp = 6, kSp = 7, kPc = 16;
  static constexpr unsigned kPerfPc = 8;
  /// Callee-saved registers except the stack pointer.
  static constexpr std::array<std::uint8_t, 6> kSaved = {3, 6, 12, 13, 14, 15};
  /// The DWARF number of perf's register, or kMaxRegisters.
  static constexpr std::array<std::uint8_t, 24> kOfPerf = {
      0, 3, 2, 1, 4, 5, 6, 7, 16, 34, 34, 34, 34, 34, 34, 34, 8, 9, 10, 11, 12, 13, 14, 15};
  static constexpr bool kHasLinkRegister = false;
  static constexpr Address code_address(std::uint64_t value) noexcept { return value; }
};

/// Sources: DWARF for the Arm 64-bit Architecture, 4.1; Linux,
/// arch/arm64/include/uapi/asm/perf_regs.h. DWARF has no number for the pc there: we use a free
/// one.
struct Aarch64 {
  static constexpr Machine kMachine = Machine::aarch64;
  static constexpr std::uint16_t kElfMachine = EM_AARCH64;
  static constexpr unsigned kFp = 29, kSp = 31, kLink = 30, kPc = 33;
  static constexpr unsigned kPerfPc = 32;
  static constexpr std::array<std::uint8_t, 11> kSaved = {19, 20, 21, 22, 23, 24,
                                                          25, 26, 27, 28, 29};
  static constexpr std::array<std::uint8_t, 33> kOfPerf = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33};
  static constexpr bool kHasLinkRegister = true;
  /// Removes the pointer authentication code and the tag: user space has 48 address bits unless a
  /// program requests more.
  static constexpr Address code_address(std::uint64_t value) noexcept {
    return value & ((std::uint64_t{1} << 48) - 1);
  }
};

template <class Arch>
DwarfRegisters dwarf_registers(const UserRegisters& registers) noexcept {
  DwarfRegisters result;
  for (unsigned i = 0; i < Arch::kOfPerf.size(); ++i) {
    if (Arch::kOfPerf[i] < kMaxRegisters && registers.has(i)) {
      result.set(Arch::kOfPerf[i], registers.values[i]);
    }
  }
  return result;
}

/// The recorded copy of a stack; the only memory that unwinding reads.
class StackMemory {
 public:
  StackMemory(Address begin, std::string_view bytes, bool is_full) noexcept
      : begin_(begin), bytes_(bytes), beyond_(beyond(begin + bytes.size(), bytes, is_full)) {}

  bool read(Address address, std::uint64_t& value) const noexcept {
    const std::uint64_t at = address - begin_;
    if (at >= bytes_.size() || bytes_.size() - at < sizeof value) return false;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return true;
  }
  /// Whether a read at this address failed because the copy was full, or because the kernel stopped
  /// at a page that it could not read.
  bool was_cut_before(Address address) const noexcept {
    const Address end = begin_ + bytes_.size();
    return address - begin_ + 8 > bytes_.size() && address + 8 - end < beyond_;
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
