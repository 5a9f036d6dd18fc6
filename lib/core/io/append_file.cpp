#include "io/append_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "io/map_start.hpp"
#include "io/mapped_tail.hpp"
#include "io/whole_file.hpp"

namespace perfmap {

namespace {

char last_byte(int fd) noexcept {
  struct stat status {};
  char last = 0;
  const bool got = ::fstat(fd, &status) == 0 && status.st_size != 0 &&
                   ::pread(fd, &last, 1, status.st_size - 1) == 1;
  return got ? last : '\0';
}

/// Whether `text` stands at `begin` in the file.
bool holds(int fd, off_t begin, std::string_view text) noexcept {
  std::array<char, 4096> block;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, block.size());
    if (::pread(fd, block.data(), part.size(), begin) != static_cast<ssize_t>(part.size()) ||
        std::memcmp(block.data(), part.data(), part.size()) != 0) {
      return false;
    }
    text.remove_prefix(part.size());
    begin += static_cast<off_t>(part.size());
  }
  return true;
}

/// A file is opened for reading as well: its lock, and a child that inherits it, want that.
int open_map(const char* path, bool own) noexcept {
  // O_NONBLOCK: a FIFO that somebody put there must not hang us.
  const int strict = own ? O_NOFOLLOW | O_NONBLOCK : 0;
  const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | strict;
  struct stat status {};
  // To whom a FIFO or a terminal was typed, it is to be written to and nothing else.
  const bool file = own || ::stat(path, &status) != 0 || S_ISREG(status.st_mode);
  const int fd = file ? ::open(path, O_RDWR | flags, 0600) : -1;
  return fd >= 0 || (file && errno != EACCES) ? fd : ::open(path, O_WRONLY | flags, 0600);
}

}  // namespace

int AppendFile::open(const char* path, bool own, bool empty_stale, bool alone) noexcept {
  Descriptor fd(open_map(path, own));
  if (!fd.is_open()) return errno;
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno;
  if (own && !S_ISREG(status.st_mode)) return EINVAL;
  // Somebody may have given another file this name, too.
  if (own && status.st_nlink > 1) return EMLINK;
  regular_ = S_ISREG(status.st_mode);
  start_ = regular_ ? begin_map(fd.get(), empty_stale, alone) : MapStart::appended;
  fd_ = std::move(fd);
  file_ = {status.st_dev, status.st_ino};
  size_ = 0;
  restat();
  newline_first_ = size_ != 0 && !ends_in_newline(path, own);
  return 0;
}

std::uint64_t AppendFile::size_now() const noexcept {
  struct stat status {};
  const bool known = regular_ && ::fstat(fd_.get(), &status) == 0;
  return known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t AppendFile::position() const noexcept {
  const off_t position = regular_ ? ::lseek(fd_.get(), 0, SEEK_CUR) : -1;
  return position < 0 ? 0 : static_cast<std::uint64_t>(position);
}

void AppendFile::restat() noexcept {
  if (regular_) size_ = size_now();
}

int AppendFile::open(int fd) noexcept {
  Descriptor own(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!own.is_open()) return errno;
  fd_ = std::move(own);
  regular_ = false;
  start_ = MapStart::appended;
  size_ = 0;
  newline_first_ = false;
  return 0;
}

/// Where the file may not be read, a blank line is the smaller evil.
bool AppendFile::ends_in_newline(const char* path, bool own) const noexcept {
  const Descriptor reader(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0)));
  if (!reader.is_open() || file_number(fd_.get()) != file_number(reader.get())) {
    return false;
  }
  // A line that another process is writing shows page by page. A search for holes waits, on most
  // file systems, until it is done; the others get a moment.
  constexpr timespec kMoment{0, 1'000'000};
  for (int tries = 0; tries < 5; ++tries) {
    if (last_byte(reader.get()) == '\n') return true;
    ::lseek(reader.get(), 0, SEEK_HOLE);
    if (last_byte(reader.get()) == '\n') return true;
    ::nanosleep(&kMoment, nullptr);
  }
  return false;
}

void AppendFile::resume_at(bool newline_first) noexcept {
  restat();
  newline_first_ = newline_first;
}

bool AppendFile::fd_was_replaced() const noexcept {
  return regular_ && fd_.is_open() && file_ != file_number(fd_.get());
}

bool AppendFile::leads_to(const char* path) const noexcept {
  struct stat status {};
  return fd_.is_open() && ::lstat(path, &status) == 0 && is({status.st_dev, status.st_ino});
}

bool AppendFile::is(FileNumber file) const noexcept {
  return fd_.is_open() && regular_ && file_ == file;
}

int AppendFile::close() noexcept {
  const bool lost = fd_was_replaced();
  const int fd = fd_.release();
  newline_first_ = false;
  if (lost) return EBADF;
  // Interrupted, it is closed all the same on Linux.
  return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
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

/// Takes back what a short write left of its lines, if nobody has written behind it; otherwise ends
/// it, so that what stands behind it is whole.
void AppendFile::take_back(std::string_view left) noexcept {
  const bool cut_short = left.back() != '\n';
  newline_first_ = cut_short;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  const off_t begin = end - static_cast<off_t>(left.size());
  struct stat status {};
  if (begin < 0 || ::fstat(fd_.get(), &status) != 0) return;
  // The same file again, to read and to write in place: O_APPEND moves even a pwrite() to the end.
  // There may be no /proc, or the process may have given up the right.
  char self[40];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", fd_.get());
  const Descriptor file(::open(self, O_RDWR | O_CLOEXEC));
  // A forked child shares our offset: are these our bytes?
  if (file.is_open() && !holds(file.get(), begin, left)) return;
  if (status.st_size == end) {
    if (::ftruncate(fd_.get(), begin) != 0) return;
    size_ -= std::min<std::uint64_t>(size_, left.size());
    newline_first_ = false;
  } else if (cut_short && file.is_open()) {
    newline_first_ = ::pwrite(file.get(), "\n", 1, end - 1) != 1;
  }
}

int AppendFile::append_behind_newline(std::string_view lines) noexcept {
  std::size_t written = 0;
  const int error = write_once("\n", written);
  if (error != 0 || written == 0) return error != 0 ? error : ENOSPC;
  newline_first_ = false;
  return append(lines);
}

/// `count` is what write(2) answered for all of `lines`, and errno its reason.
int AppendFile::append_slowly(std::string_view lines, ssize_t count) noexcept {
  if (count < 0) return errno == EINTR ? append(lines) : errno;
  const auto written = static_cast<std::size_t>(count);
  size_ += written;
  if (!regular_) return append_rest(lines, written);
  const int why = why_no_room();
  if (written != 0) take_back(lines.substr(0, written));
  return why;
}

/// Of a file, a part means that there is no room: on the disk, or by the process's limit, up to
/// which the kernel writes.
int AppendFile::why_no_room() const noexcept {
  rlimit max{};
  if (::getrlimit(RLIMIT_FSIZE, &max) != 0 || max.rlim_cur == RLIM_INFINITY) return ENOSPC;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  return end >= 0 && static_cast<rlim_t>(end) >= max.rlim_cur ? EFBIG : ENOSPC;
}

/// A pipe or a terminal takes bytes as it can. What is left stays in `bytes`.
int AppendFile::write_all(std::string_view& bytes) noexcept {
  while (!bytes.empty()) {
    std::size_t more = 0;
    const int error = write_once(bytes, more);
    if (error != 0 || more == 0) return error != 0 ? error : ENOSPC;
    bytes.remove_prefix(more);
  }
  return 0;
}

int AppendFile::append_rest(std::string_view lines, std::size_t written) noexcept {
  std::string_view rest = lines.substr(written);
  const int error = write_all(rest);
  const std::size_t begun = lines.size() - rest.size();
  newline_first_ = error != 0 && begun != 0 && lines[begun - 1] != '\n';
  return error;
}

int AppendFile::append_from(std::string_view& lines) noexcept {
  if (!regular_ && !newline_first_) return write_all(lines);
  const int error = append(lines);
  if (error == 0) lines = {};
  return error;
}

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;

}  // namespace

int AppendFile::copy_from(const char* path, bool follow_link, std::uint64_t max_bytes) noexcept {
  const Descriptor source(
      ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow_link ? 0 : O_NOFOLLOW)));
  if (!source.is_open()) return errno;
  struct stat from {};
  struct stat to {};
  if (::fstat(source.get(), &from) != 0 || ::fstat(fd_.get(), &to) != 0) return errno;
  if (S_ISDIR(from.st_mode)) return EISDIR;
  const FileNumber ours{to.st_dev, to.st_ino};
  if (!S_ISREG(from.st_mode) || ours == FileNumber{from.st_dev, from.st_ino}) return EINVAL;
  // A mapped writer's filler is nothing to anybody else.
  const std::uint64_t count =
      size_without_filler(source.get(), static_cast<std::uint64_t>(from.st_size));
  // One byte more for the newline that may have to end it.
  if (count != 0 && max_bytes != 0 && (size_ >= max_bytes || count >= max_bytes - size_)) {
    return EFBIG;
  }
  return copy_bytes(source.get(), count);
}

/// `count` was asked for before, so that a source that grows meanwhile has an end. Every block ends
/// where a line does, because another process may append between two; a line longer than a block
/// goes in pieces.
int AppendFile::copy_bytes(int source, std::uint64_t count) noexcept {
  const std::unique_ptr<char[]> block(new (std::nothrow) char[kBlock + 1]);
  if (!block) return ENOMEM;
  std::size_t kept = 0;  // bytes at the start of the block that wait for the end of their line
  int error = 0;
  while (error == 0) {
    const std::size_t room = std::min<std::uint64_t>(kBlock - kept, count);
    const ssize_t got = ::read(source, block.get() + kept, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;  // all of it, or it is shorter than it said
    count -= static_cast<std::size_t>(got);
    const std::string_view bytes(block.get(), kept + static_cast<std::size_t>(got));
    const std::size_t newline = bytes.rfind('\n');
    if (newline == bytes.npos && bytes.size() < kBlock) {
      kept = bytes.size();
      continue;
    }
    const std::size_t whole = newline == bytes.npos ? bytes.size() : newline + 1;
    error = append_part(bytes.substr(0, whole));
    kept = bytes.size() - whole;
    std::memmove(block.get(), block.get() + whole, kept);
  }
  if (error == 0 && (kept != 0 || in_line_)) {
    block[kept] = '\n';
    error = append_part({block.get(), kept + 1});
  }
  newline_first_ = newline_first_ || in_line_;
  in_line_ = false;
  return error;
}

/// append(), of what may be a piece of a line.
int AppendFile::append_part(std::string_view bytes) noexcept {
  const int error = append(bytes);
  if (error == 0) in_line_ = bytes.back() != '\n';
  return error;
}

int AppendFile::inherit(const char* path, std::uint64_t size, std::string_view more,
                        bool empty_stale) noexcept {
  constexpr int kTries = 3;  // others may do things meanwhile
  WholeFile whole;
  int error = whole.create(path);
  if (error == 0) error = whole.append_lines(fd_.get(), size);
  if (error == 0) error = whole.append(more);
  for (int i = 0; error == 0 && i < kTries; ++i) {
    error = whole.publish();
    if (error != EEXIST) break;
    AppendFile found;
    error = found.open(path, true, empty_stale);
    if (error != 0) return error;
    if (found.is(file())) return EBUSY;
    if (found.start_ != MapStart::made && found.start_ != MapStart::emptied) {
      return found.take_over(*this, whole.descriptor(), whole.size());
    }
    if (::unlink(path) != 0 && errno != ENOENT) return errno;
  }
  if (error != 0) return error;
  close();  // the parent's, where it is still that
  fd_ = whole.take();
  file_ = file_number(fd_.get());
  begin_map(fd_.get(), false);  // for the lock
  start_ = MapStart::inherited;
  size_ = whole.size();
  newline_first_ = false;
  return 0;
}

/// Appends those bytes to this file, and stands in for `target` from then on.
int AppendFile::take_over(AppendFile& target, int source, std::uint64_t count) noexcept {
  ::lseek(source, 0, SEEK_SET);
  const int error = copy_bytes(source, count);
  if (error == 0) target = std::move(*this);
  return error;
}

}  // namespace perfmap
