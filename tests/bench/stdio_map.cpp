// SPDX-License-Identifier: MIT
#include "bench/stdio_map.hpp"

#include <cinttypes>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>

namespace perfmap::bench {

StdioMap::StdioMap(const std::string& path) {
  std::filesystem::remove(path);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  file_ = ::fdopen(fd, "a");
  if (file_ == nullptr) std::abort();
}

void StdioMap::write(std::uintptr_t start, unsigned size, const char* name) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "%" PRIxPTR " %x %s\n", start, size, name);
  std::fflush(file_);
}

void write_with_stdio(const std::string& path, int threads, int entries) {
  StdioMap map(path);
  in_threads(threads, entries, [&map](int count) {
    for (int i = 0; i < count; ++i) map.write(kCode, kCodeSize, kCodeName);
  });
}

}  // namespace perfmap::bench
