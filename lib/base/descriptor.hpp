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

/// Takes, changes or gives back (F_WRLCK, F_RDLCK, F_UNLCK) the lock of a whole file, without
/// waiting. It is the open file description's (F_OFD_SETLK): of this descriptor and its copies,
/// those in children included, until all of them are closed. 0; EBUSY where another one has it;
/// else an errno value, as descriptors that cannot read or write and some file systems have none.
inline int lock_file(int fd, short type) noexcept {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

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

/// Puts pthread_cancel(3) off: write(2) would act on it, with a lock held, and as nothing here lets
/// the unwinding that it starts pass, the process would end. One that is asynchronous nobody can
/// use around locks.
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
