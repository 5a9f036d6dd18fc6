#include "io/whole_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace perfmap {
namespace {

constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY;
constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kSelf = 40;

/// Memory that no lock of malloc() stands before: a child of a bare clone(2) may find that taken.
class Block {
 public:
  Block() noexcept
      : at_(::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Block() {
    if (at_ != MAP_FAILED) ::munmap(at_, kBlock);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  char* get() const noexcept { return at_ != MAP_FAILED ? static_cast<char*>(at_) : nullptr; }

 private:
  void* at_;
};

void path_of(int fd, char (&path)[kSelf]) noexcept {
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
}

/// Of "DIRECTORY/NAME" the length of "DIRECTORY/"; 0 where there is none.
std::size_t directory_size(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? 0 : static_cast<std::size_t>(slash - path) + 1;
}

}  // namespace

WholeFile::~WholeFile() { drop_hidden(); }

void WholeFile::drop_hidden() noexcept {
  if (hidden_[0] != '\0') ::unlink(hidden_);
  hidden_[0] = '\0';
}

int WholeFile::create(const char* path) noexcept {
  path_ = path;
  const std::size_t size = directory_size(path);
  if (std::strlen(path) + sizeof "..part" > kMaxPath) return ENAMETOOLONG;
  std::memcpy(hidden_, path, size);
  std::memcpy(hidden_ + size, ".", 2);
  fd_ = Descriptor(::open(hidden_, kFlags | O_TMPFILE, 0600));
  hidden_[0] = '\0';
  if (!fd_.is_open()) {
    const bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
    return unknown ? create_named() : errno;
  }
  char self[kSelf];
  path_of(fd_.get(), self);
  return ::access(self, F_OK) == 0 ? 0 : create_named();
}

/// The name is the process's own: whatever has it was left there by a former one.
int WholeFile::create_named() noexcept {
  const std::size_t size = directory_size(path_);
  char name[kMaxPath];
  std::snprintf(name, sizeof name, "%.*s.%s.part", static_cast<int>(size), path_, path_ + size);
  ::unlink(name);
  fd_ = Descriptor(::open(name, kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!fd_.is_open()) return errno;
  std::memcpy(hidden_, name, sizeof name);
  return 0;
}

int WholeFile::append(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    size_ += static_cast<std::size_t>(count);
  }
  return 0;
}

int WholeFile::append_lines(int source, std::uint64_t size) noexcept {
  if (size == 0) return 0;
  const Block block;
  if (block.get() == nullptr) return ENOMEM;
  std::uint64_t offset = 0;
  std::uint64_t line = 0;  // where the last line begins, in this file
  while (offset < size) {
    const std::size_t room = std::min<std::uint64_t>(kBlock, size - offset);
    const ssize_t got = ::pread(source, block.get(), room, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // it is shorter than it was
    const std::string_view bytes(block.get(), static_cast<std::size_t>(got));
    if (const std::size_t end = bytes.rfind('\n'); end != bytes.npos) line = size_ + end + 1;
    if (const int error = append(bytes); error != 0) return error;
    offset += bytes.size();
  }
  if (line == size_) return 0;
  if (::ftruncate(fd_.get(), static_cast<off_t>(line)) != 0) return errno;
  size_ = line;
  return 0;
}

int WholeFile::publish() noexcept {
  char self[kSelf];
  path_of(fd_.get(), self);
  const char* const from = hidden_[0] != '\0' ? hidden_ : self;
  const int flags = hidden_[0] != '\0' ? 0 : AT_SYMLINK_FOLLOW;
  if (::linkat(AT_FDCWD, from, AT_FDCWD, path_, flags) != 0) return errno;
  drop_hidden();
  return 0;
}

}  // namespace perfmap
