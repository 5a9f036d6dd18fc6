#pragma once

#include <cstdint>

namespace perfmap {

/// What becomes of a process's own map or dump in a forked child. In none of them does the child
/// write into its parent's file, and what the parent has buffered is written by the parent.
enum class ForkPolicy : std::uint8_t {
  /// CPython's default: the child's file starts empty, and is made when the child first opens it or
  /// writes.
  fresh,
  /// The child's file starts with what its parent had written when it forked, from the parent's
  /// descriptor, so that it does not matter whether that file still has a name. It appears whole,
  /// before fork(2) returns in the child; after a bare clone(2), which runs no handlers, at the
  /// child's first call. Where that fails, each call tries again and says why.
  inherit,
  /// Children of the process that configured this write nothing, successfully.
  off,
};

}  // namespace perfmap
