// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "perfmap/output_file.hpp"

namespace perfmap::test {

/// What `write(OutputFile&)` writes. An OutputFile needs a descriptor; this one is in memory.
template <class Write>
std::string written(Write&& write) {
  const int fd = ::memfd_create("written", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  OutputFile out = OutputFile::to_descriptor(fd, "memory");
  write(out);
  if (!out.flush()) std::abort();
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  if (::pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) std::abort();
  ::close(fd);
  return text;
}

}  // namespace perfmap::test
