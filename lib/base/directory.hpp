// SPDX-License-Identifier: MIT
#pragma once

#include <dirent.h>

#include "base/descriptor.hpp"

namespace perfmap {

/// Calls `visit` with each name in a directory until it returns false. `flags`, such as O_NOFOLLOW,
/// are those of open(2). False, with errno set, if the directory cannot be opened.
template <class Visit>
bool visit_names(int at, const char* path, Visit&& visit, int flags = 0) {
  struct Opened {
    DIR* const list;
    ~Opened() {  // visit() may throw
      if (list != nullptr) ::closedir(list);
    }
  };
  Descriptor directory(::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  const Opened opened{directory.is_open() ? ::fdopendir(directory.get()) : nullptr};
  if (opened.list == nullptr) return false;
  directory.release();
  while (const dirent* const entry = ::readdir(opened.list)) {
    if (!visit(entry->d_name)) break;
  }
  return true;
}

}  // namespace perfmap
