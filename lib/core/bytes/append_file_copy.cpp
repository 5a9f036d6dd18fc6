#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes/append_file.hpp"
#include "bytes/mapped_tail.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;

}  // namespace

int AppendFile::copy_from(const char* path, bool follow_link, std::uint64_t most_bytes) noexcept {
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
  if (count != 0 && most_bytes != 0 && (size_ >= most_bytes || count >= most_bytes - size_)) {
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

}  // namespace perfmap
