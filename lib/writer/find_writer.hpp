// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>

#include "base/directory.hpp"

namespace perfmap {

/// Calls `test` with each numeric name in the directory until it returns true, and returns that
/// number; -1 if there is none, or no such directory.
template <class Test>
int find_number(const char* path, Test&& test) {
  int found = -1;
  visit_names(AT_FDCWD, path, [&](const char* name) {
    if (*name < '0' || *name > '9' || !test(name)) return true;
    found = std::atoi(name);
    return false;
  });
  return found;
}

/// Whether the descriptor, by its name in /proc/PID/fd, is open for writing to this file.
bool writes_through(const char* proc, const char* process, const char* fd,
                    FileNumber file) noexcept;

/// The pid of a process that has the file open for writing, as far as /proc shows; `except` is
/// skipped. 0 if there is none. O(descriptors of all processes).
int find_writer(FileNumber file, const char* proc, int except = 0) noexcept;

/// Whether this process has the file open for writing. O(its descriptors).
bool is_writer(int pid, FileNumber file, const char* proc) noexcept;

}  // namespace perfmap
