#pragma once

#include <cstdint>
#include <optional>

#include "unwind/code_bytes.hpp"

namespace perfmap {

/// Where the caller of a leaf is, by the instructions around its pc: a function that has not made
/// its frame yet, or has given it up already.
struct LeafFrame {
  std::uint64_t return_at = 0;    ///< the return address is at the stack pointer + that
  bool in_link_register = false;  ///< instead
  std::uint64_t popped = 0;       ///< the caller's stack pointer is that much higher
  std::optional<std::uint64_t>
      saved_fp;         ///< the caller's frame pointer is at the stack pointer + that
  bool is_plt = false;  ///< a linkage table's entry
};

/// Whether it takes CodeBytes::offset to tell, which may not be known yet: the function may begin
/// here, or make its frame soon.
bool wants_offset_x86_64(const CodeBytes& code) noexcept;
bool wants_offset_aarch64(const CodeBytes& code) noexcept;

/// Nothing where the code does not tell, as in the midst of a function.
std::optional<LeafFrame> leaf_frame_x86_64(const CodeBytes& code) noexcept;
std::optional<LeafFrame> leaf_frame_aarch64(const CodeBytes& code) noexcept;

}  // namespace perfmap
