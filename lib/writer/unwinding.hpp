// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// How profilers unwind through one function: an .eh_frame with one CIE and one FDE, and its
/// .eh_frame_hdr. Needs libc alone. Functions that return an int return 0 or an errno value.
///
/// Source: DWARF 5, section 6.4 and 7.24; Linux Standard Base 5.0, 10.6 (.eh_frame); Linux,
/// tools/perf/util/genelf.c, for where perf expects both sections.

namespace perfmap {

/// DW_EH_PE_pcrel | DW_EH_PE_sdata4: the encoding of all pointers that are written here.
inline constexpr unsigned char kPcrelSdata4 = 0x1b;

// DW_CFA_* of DWARF 5, table 7.29; the two from 0x40 on carry a number in their low six bits.
inline constexpr unsigned char kAdvance = 0x40;
inline constexpr unsigned char kOffset = 0x80;
inline constexpr unsigned char kRestore = 0xc0;
inline constexpr unsigned char kDefCfa = 0x0c;
inline constexpr unsigned char kDefCfaRegister = 0x0d;
inline constexpr unsigned char kDefCfaOffset = 0x0e;

/// The factors by which instructions count, and the column of the return address.
struct FrameFactors {
  std::uint64_t code = 1;
  std::int64_t data = -8;
  std::uint64_t return_register = 0;
};

/// The call frame information of one function; the instructions are bytes of DWARF.
struct FrameRules {
  FrameFactors factors;
  bool is_signal_frame = false;
  std::string_view begin;  ///< initial instructions, in the CIE
  std::string_view rest;   ///< in the FDE
};

struct UnwindingSizes {
  std::size_t frame = 0;   ///< .eh_frame; .eh_frame_hdr follows
  std::size_t header = 0;  ///< 0: the room is too small
};

/// Where perf expects the frame of code of that size: at the next multiple of 8.
constexpr std::uint64_t frame_offset(std::uint64_t code_size) noexcept {
  return code_size + (8 - code_size % 8) % 8;
}

/// Writes both sections, for a place frame_offset(code_size) bytes after the begin of the code. An
/// FDE for the first `covered` bytes of code; all pointers are relative.
UnwindingSizes write_unwinding(std::span<char> out, const FrameRules& rules,
                               std::uint64_t code_size, std::uint64_t covered) noexcept;

/// An .eh_frame for the `size` bytes of code at `begin`, with absolute addresses: its own place in
/// memory does not matter. Its size; 0: the room is too small.
std::size_t write_exception_frame(std::span<char> out, const FrameRules& rules, const void* begin,
                                  std::size_t size) noexcept;

/// The rules of this machine for a function whose frame pointer is set up. ENOTSUP on machines
/// other than x86-64 and aarch64.
int frame_pointer_rules(FrameRules& rules) noexcept;
/// For a function whose stack pointer stays `offset` bytes below its caller's. `room` holds the
/// instructions. EINVAL for an offset that no such function has.
int no_frame_rules(FrameRules& rules, std::span<char> room, std::uint32_t offset) noexcept;
/// The rules of a CIE and an FDE with their lengths, as compilers make them for this machine.
/// EINVAL if they are damaged, ENOTSUP for augmentations other than z, R, P, L, S and B.
int rules_of_fde(FrameRules& rules, std::string_view cie, std::string_view fde) noexcept;
/// Finds the FDE of the code at `code` in an .eh_frame that lies at `address`; also its CIE. ENOENT
/// if there is none. O(section).
int find_fde(std::string_view section, std::uint64_t address, std::uint64_t code,
             std::string_view& cie, std::string_view& fde) noexcept;

}  // namespace perfmap
