// SPDX-License-Identifier: MIT
// Also used by the writers, which need libc alone.

#include "writer/find_writer.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace perfmap {
namespace {

constexpr std::size_t kMaxPath = 4096;

/// Whether a descriptor is open for writing, from the line "flags:\t0100001" of its fdinfo.
bool opened_for_writing(const char* info_path) noexcept {
  const Descriptor file(::open(info_path, O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file.is_open() ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return false;
  text[size] = '\0';
  const char* const flags = std::strstr(text, "flags:");
  return flags != nullptr && (std::strtoul(flags + 6, nullptr, 8) & O_ACCMODE) != O_RDONLY;
}

bool writes(const char* proc, const char* process, FileNumber file) noexcept {
  char path[kMaxPath];
  std::snprintf(path, sizeof path, "%s/%s/fd", proc, process);
  return find_number(path,
                     [&](const char* fd) { return writes_through(proc, process, fd, file); }) >= 0;
}

}  // namespace

bool writes_through(const char* proc, const char* process, const char* fd,
                    FileNumber file) noexcept {
  char path[kMaxPath];
  struct stat status {};
  std::snprintf(path, sizeof path, "%s/%s/fd/%s", proc, process, fd);
  if (::stat(path, &status) != 0 || file != FileNumber{status.st_dev, status.st_ino}) return false;
  std::snprintf(path, sizeof path, "%s/%s/fdinfo/%s", proc, process, fd);
  return opened_for_writing(path);
}

bool is_writer(int pid, FileNumber file, const char* proc) noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%d", pid);
  return writes(proc, name, file);
}

int find_writer(FileNumber file, const char* proc, int except) noexcept {
  const int found = find_number(proc, [&](const char* process) {
    return std::atoi(process) != except && writes(proc, process, file);
  });
  return found < 0 ? 0 : found;
}

}  // namespace perfmap
