// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "perfmap/profile/unwinder.hpp"
#include "unwind/code_bytes.hpp"

namespace perfmap {

/// Where the caller of a leaf is, from the instructions around its pc, in a function that has not
/// set up its frame yet, or has already removed it.
struct LeafFrame {
  std::uint64_t return_at = 0;    ///< the return address is at this offset from the stack pointer
  bool in_link_register = false;  ///< the return address is in the link register instead
  std::uint64_t popped = 0;       ///< the caller's stack pointer is this much higher
  std::optional<std::uint64_t> saved_fp;  ///< the caller's frame pointer is saved at this offset
                                          ///< from the stack pointer
  bool is_plt = false;                    ///< a PLT entry
  std::optional<std::uint8_t> return_register = {};  ///< DWARF's number of the one that has the
                                                     ///< return address, if not the link register
};

/// Whether the answer depends on CodeAround::offset, which may not be known yet: the function may
/// begin here, or set up its frame soon.
bool wants_offset(Machine machine, const CodeAround& code) noexcept;

/// Nothing if the code does not show it, as in the middle of a function.
std::optional<LeafFrame> leaf_frame(Machine machine, const CodeAround& code) noexcept;

/// Whether code from the begin of a function on has not set up a frame with a frame pointer. False
/// for machines with a link register.
bool has_no_frame_yet(Machine machine, std::string_view code) noexcept;

/// Whether the next instruction returns to the link register, so that nothing is on the stack.
/// False for machines without one.
bool returns_to_link_register(Machine machine, std::string_view code) noexcept;

/// The section of linkage tables that covers the address, or null. O(sections).
const ElfSectionFacts* plt_section(const Module& module, Address vaddr) noexcept;

/// On a machine with a link register, in a section of linkage tables: every linker's entries leave
/// the return address where it is.
std::optional<LeafFrame> plt_frame(Machine machine, const CodeRegion& region, Address pc) noexcept;

}  // namespace perfmap
