// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace perfmap {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Acquires, converts or releases (F_WRLCK, F_RDLCK, F_UNLCK) a lock on the whole file, without
/// waiting. The lock belongs to the open file description (F_OFD_SETLK): it covers this descriptor
/// and its copies, also in children, until all are closed. Returns 0; EBUSY if another description
/// has the lock; else an errno value, because descriptors that cannot read or write, and some file
/// systems, do not support locks.
inline int lock_file(int fd, short type) noexcept {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

/// Identifies a file: device and inode.
struct FileNumber {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileNumber&, const FileNumber&) = default;
};

/// Empty if the descriptor is closed.
inline FileNumber file_number(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? FileNumber{status.st_dev, status.st_ino} : FileNumber{};
}

/// Defers pthread_cancel(3). write(2) is a cancellation point: it would act with a lock held, and
/// the process would end, because no code here lets the unwinding pass. Asynchronous cancellation
/// cannot be used with locks at all.
class NoCancel {
 public:
  NoCancel() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace perfmap
