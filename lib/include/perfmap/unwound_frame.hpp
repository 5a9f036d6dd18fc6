#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"

namespace perfmap {

/// How a frame was found.
enum class FrameSource : std::uint8_t {
  initial,        ///< the sample's own registers
  leaf,           ///< the caller of a leaf, by what its code is about to do with the stack
  eh_cfi,         ///< .eh_frame
  debug_frame,    ///< .debug_frame
  jit_cfi,        ///< unwinding information in a jitdump
  frame_pointer,  ///< the chain of saved frame pointers
  plt,            ///< the caller of a linkage table's entry, by its code
  scan,           ///< a word on the stack that looks like a return address: a guess
  stitched,       ///< taken from another sample of the thread: a guess
  callchain,      ///< recorded by the kernel, of user space
  kernel,         ///< recorded by the kernel, of itself
};
/// "leaf" (of `initial`, too), "eh-cfi", "debug-frame", "jit-cfi", "frame-pointer", "plt", "scan",
/// "stitched", "callchain", "kernel".
PERFMAP_API std::string_view to_string(FrameSource source) noexcept;

/// How a stack ended.
enum class StackEnd : std::uint8_t {
  root,        ///< at the thread's first function
  truncated,   ///< at the end of the copy of the stack: full, or ended at a page by the kernel
  no_info,     ///< at code that nothing is known about
  bad_memory,  ///< what is known led out of the stack, or to no code
  loop,        ///< the caller's frame did not lie above
  limit,       ///< after as many frames as were asked for
  callchain,   ///< the chain is the kernel's, and is as long as it is
};
/// "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain".
PERFMAP_API std::string_view to_string(StackEnd end) noexcept;

/// A frame of a stack that was unwound.
struct UnwoundFrame {
  Address pc = 0;  ///< a caller's is its return address
  Address sp = 0;  ///< the stack pointer there
  FrameSource source = FrameSource::initial;
  /// The pc was found where return addresses are: it may belong to the next function already, so
  /// names are those of pc - 1 unless UnwindSpace::return_site() says otherwise. Not so for the
  /// leaf, for what a signal interrupted, and for the trampoline of a signal.
  bool is_return = false;

  friend bool operator==(const UnwoundFrame&, const UnwoundFrame&) = default;
};

}  // namespace perfmap
