#pragma once

#include "base/descriptor.hpp"

namespace perfmap {

/// The pid of a process that has the file open for writing, as far as /proc shows; `except` is
/// skipped. 0 if there is none. O(descriptors of all processes).
int find_writer(FileNumber file, const char* proc, int except = 0) noexcept;

}  // namespace perfmap
