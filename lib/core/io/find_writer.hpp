#pragma once

#include "base/descriptor.hpp"

namespace perfmap {

/// The number of a process that has the file open for writing, as far as /proc shows; 0: none but
/// `except`. O(descriptors of all processes).
int find_writer(FileNumber file, const char* proc, int except = 0) noexcept;

}  // namespace perfmap
