#include "bytes/append_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <new>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace perfmap {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;

bool same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

int AppendFile::open(const std::string& path, bool own) noexcept {
  // O_NONBLOCK: a FIFO that somebody put there must not hang us.
  const int strict = own ? O_NOFOLLOW | O_NONBLOCK : 0;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | strict;
  Descriptor fd(::open(path.c_str(), flags, 0600));
  if (!fd.is_open()) return errno;
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno;
  if (own && !S_ISREG(status.st_mode)) return EINVAL;
  fd_ = std::move(fd);
  regular_ = S_ISREG(status.st_mode);
  size_ = regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  newline_first_ = size_ != 0 && !ends_in_newline(path, own);
  return 0;
}

/// Where the file may not be read, a blank line is the smaller evil.
bool AppendFile::ends_in_newline(const std::string& path, bool own) const noexcept {
  const Descriptor reader(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0)));
  struct stat ours {};
  struct stat theirs {};
  if (!reader.is_open() || ::fstat(fd_.get(), &ours) != 0 || ::fstat(reader.get(), &theirs) != 0 ||
      !same_file(ours, theirs) || theirs.st_size == 0) {
    return false;
  }
  char last = 0;
  return ::pread(reader.get(), &last, 1, theirs.st_size - 1) == 1 && last == '\n';
}

int AppendFile::close() noexcept {
  const int fd = fd_.release();
  newline_first_ = false;
  return fd >= 0 && ::close(fd) != 0 ? errno : 0;
}

int AppendFile::write_once(std::string_view bytes, std::size_t& written) noexcept {
  written = 0;
  for (;;) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      written = static_cast<std::size_t>(count);
      size_ += written;
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

/// Takes back the last `count` bytes that we wrote, if nobody has written behind them.
void AppendFile::cut_off(std::size_t count) noexcept {
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  struct stat status {};
  const bool ours = regular_ && end >= 0 && ::fstat(fd_.get(), &status) == 0 &&
                    status.st_size == end && static_cast<std::size_t>(end) >= count;
  if (ours && ::ftruncate(fd_.get(), end - static_cast<off_t>(count)) == 0) {
    size_ -= std::min<std::uint64_t>(size_, count);
  } else {
    newline_first_ = true;
  }
}

int AppendFile::append(std::string_view lines) noexcept {
  if (newline_first_) {
    std::size_t written = 0;
    const int error = write_once("\n", written);
    if (error != 0 || written == 0) return error != 0 ? error : ENOSPC;
    newline_first_ = false;
  }
  std::size_t written = 0;
  if (const int error = write_once(lines, written); error != 0) return error;
  if (written == lines.size()) return 0;
  // A pipe or a terminal takes bytes as it can; of a file, a part means that there is no room.
  while (!regular_ && written < lines.size()) {
    std::size_t more = 0;
    if (const int error = write_once(lines.substr(written), more); error != 0) return error;
    written += more;
  }
  if (written == lines.size()) return 0;
  cut_off(written);
  return ENOSPC;
}

int AppendFile::copy_from(const std::string& path, bool follow_link) noexcept {
  const Descriptor source(::open(
      path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow_link ? 0 : O_NOFOLLOW)));
  if (!source.is_open()) return errno;
  struct stat from {};
  struct stat to {};
  if (::fstat(source.get(), &from) != 0 || ::fstat(fd_.get(), &to) != 0) return errno;
  if (S_ISDIR(from.st_mode)) return EISDIR;
  if (!S_ISREG(from.st_mode) || same_file(from, to)) return EINVAL;
  return copy_bytes(source.get(), static_cast<std::uint64_t>(from.st_size));
}

/// `count` was asked for before, so that a source that grows meanwhile has an end.
int AppendFile::copy_bytes(int source, std::uint64_t count) noexcept {
  const std::unique_ptr<char[]> block(new (std::nothrow) char[kBlock]);
  if (!block) return ENOMEM;
  char last = '\n';
  while (count > 0) {
    const ssize_t got = ::read(source, block.get(), std::min<std::uint64_t>(kBlock, count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // shorter than it said
    const std::string_view bytes(block.get(), static_cast<std::size_t>(got));
    if (const int error = append(bytes); error != 0) {
      newline_first_ = newline_first_ || last != '\n';
      return error;
    }
    last = bytes.back();
    count -= bytes.size();
  }
  return last == '\n' ? 0 : append("\n");
}

}  // namespace perfmap
