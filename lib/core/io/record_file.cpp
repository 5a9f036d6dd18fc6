#include "io/record_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"

namespace perfmap {
namespace {

// To be read, too: a mapping that can be executed wants that.
constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY;

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// What is left of the parts behind `written` bytes of them.
std::span<iovec> rest_of(std::span<iovec> parts, std::size_t written) noexcept {
  while (!parts.empty() && written >= parts.front().iov_len) {
    written -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + written;
    parts.front().iov_len -= written;
  }
  return parts;
}

}  // namespace

int RecordFile::create(const std::string& path) noexcept {
  Descriptor fd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  return fd.is_open() ? take(std::move(fd), false) : errno;
}

int RecordFile::open(const std::string& path, bool own) noexcept {
  // O_NONBLOCK: a FIFO that somebody put there must not hang us.
  int flags = own ? kFlags | O_NOFOLLOW | O_NONBLOCK : kFlags;
  struct stat status {};
  // A FIFO that is opened to be read as well does not wait for its reader.
  if (!own && ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    flags = (kFlags & ~O_ACCMODE) | O_WRONLY;
  }
  Descriptor fd(::open(path.c_str(), flags));
  return fd.is_open() ? take(std::move(fd), own) : errno;
}

int RecordFile::open(int fd) noexcept {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy.is_open()) return errno;
  fd_ = std::move(copy);
  regular_ = false;
  size_ = 0;
  torn_ = 0;
  return 0;
}

int RecordFile::take(Descriptor fd, bool own) noexcept {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno;
  if (own && !S_ISREG(status.st_mode)) return EINVAL;
  if (own && status.st_uid != ::geteuid()) return EPERM;
  fd_ = std::move(fd);
  file_ = {status.st_dev, status.st_ino};
  regular_ = S_ISREG(status.st_mode);
  size_ = regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  torn_ = 0;
  return 0;
}

int RecordFile::lock() noexcept {
  if (!regular_) return 0;
  if (lock_file(fd_.get(), F_WRLCK) == EBUSY) return EBUSY;
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno;
  size_ = static_cast<std::uint64_t>(status.st_size);
  return 0;
}

void RecordFile::unlock() noexcept {
  if (regular_ && fd_.is_open()) lock_file(fd_.get(), F_UNLCK);
}

void RecordFile::swap(RecordFile& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(marker_, other.marker_);
  std::swap(regular_, other.regular_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(torn_, other.torn_);
}

bool RecordFile::fd_was_replaced() const noexcept {
  return regular_ && fd_.is_open() && file_ != file_number(fd_.get());
}

int RecordFile::close() noexcept {
  if (marker_ != nullptr) ::munmap(std::exchange(marker_, nullptr), page_size());
  const bool lost = fd_was_replaced();
  const int fd = fd_.release();
  if (lost) return EBADF;
  // Interrupted, it is closed all the same on Linux.
  return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
}

int RecordFile::map_first_page() noexcept {
  void* const page = ::mmap(nullptr, page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd_.get(), 0);
  if (page == MAP_FAILED) return errno;
  marker_ = page;
  return 0;
}

/// `count` is what writev(2) answered for all of the parts, and errno its reason.
int RecordFile::append_slowly(std::span<iovec> parts, std::size_t total, ssize_t count) noexcept {
  std::size_t written = 0;
  for (;;) {
    const int error = count < 0 ? errno : why_short(count);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
      parts = rest_of(parts, static_cast<std::size_t>(count));
    }
    size_ += count > 0 ? static_cast<std::size_t>(count) : 0;
    if (written == total) return 0;
    if (error != 0 && error != EINTR) {
      torn_ = written;
      repair();
      return error;
    }
    count = ::writev(fd_.get(), parts.data(), static_cast<int>(parts.size()));
  }
}

/// Why a second try would be in vain, and only earn a signal: a short write ended at the process's
/// limit, up to which the kernel writes, or took nothing. Else 0.
int RecordFile::why_short(ssize_t count) const noexcept {
  const int nothing = count == 0 ? ENOSPC : 0;
  rlimit max{};
  if (!regular_ || ::getrlimit(RLIMIT_FSIZE, &max) != 0 || max.rlim_cur == RLIM_INFINITY) {
    return nothing;
  }
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  return end >= 0 && static_cast<rlim_t>(end) >= max.rlim_cur ? EFBIG : nothing;
}

int RecordFile::cut(std::uint64_t size) noexcept {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno;
  if (static_cast<std::uint64_t>(status.st_size) != size_) return EBUSY;
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return errno;
  size_ = size;
  return 0;
}

/// A record that is torn takes those behind it along, so nothing is written there.
int RecordFile::repair() noexcept {
  if (torn_ == 0) return 0;
  if (!regular_) return EIO;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);  // behind the bytes in question
  if (end < static_cast<off_t>(torn_)) return EIO;
  size_ = static_cast<std::uint64_t>(end);
  if (cut(size_ - torn_) != 0) return EIO;
  torn_ = 0;
  return 0;
}

}  // namespace perfmap
