// SPDX-License-Identifier: MIT
#pragma once

#include "base/descriptor.hpp"

namespace perfmap {

/// The pid of a process that has the file open for writing, as far as /proc shows; `except` is
/// skipped. 0 if there is none. O(descriptors of all processes).
int find_writer(FileNumber file, const char* proc, int except = 0) noexcept;

/// Whether this process has the file open for writing. O(its descriptors).
bool is_writer(int pid, FileNumber file, const char* proc) noexcept;

}  // namespace perfmap
