#pragma once

#include <sys/stat.h>
#include <sys/types.h>

namespace perfmap {

/// What tells a file from all others that there are: its device and its inode.
struct FileNumber {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileNumber&, const FileNumber&) = default;
};

/// Nothing's, where the descriptor is closed.
inline FileNumber file_number(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? FileNumber{status.st_dev, status.st_ino} : FileNumber{};
}

}  // namespace perfmap
