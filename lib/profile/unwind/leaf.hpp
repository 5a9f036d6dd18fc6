#pragma once

#include <cstdint>
#include <optional>

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
};

/// Whether the answer depends on CodeBytes::offset, which may not be known yet: the function may
/// begin here, or set up its frame soon.
bool wants_offset_x86_64(const CodeBytes& code) noexcept;
bool wants_offset_aarch64(const CodeBytes& code) noexcept;

/// Nothing if the code does not show it, as in the middle of a function.
std::optional<LeafFrame> leaf_frame_x86_64(const CodeBytes& code) noexcept;
std::optional<LeafFrame> leaf_frame_aarch64(const CodeBytes& code) noexcept;

}  // namespace perfmap
