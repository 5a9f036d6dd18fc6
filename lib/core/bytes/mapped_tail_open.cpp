#include <cerrno>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <utility>

#include "bytes/file_lock.hpp"
#include "bytes/mapped_tail.hpp"
#include "perfmap/open_writers.hpp"

namespace perfmap {
namespace {

/// Whether what is reserved stays reserved when it is overwritten. Others may answer a store with
/// SIGBUS on a full disk.
bool keeps_room(int fd) noexcept {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return false;
  constexpr auto kXfs = 0x58465342L;
  const auto type = static_cast<long>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || type == kXfs;
}

/// The file of `fd` again, to be mapped. There may be no /proc.
Descriptor open_again(int fd, const std::string& path) noexcept {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  char self[40];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  Descriptor again(::open(self, kFlags));
  if (!again.is_open()) again = Descriptor(::open(path.c_str(), kFlags));
  return again.is_open() && file_number(fd) == file_number(again.get()) ? std::move(again)
                                                                        : Descriptor();
}

}  // namespace

int MappedTail::check_unused(const std::string& path, bool follow_link) noexcept try {
  struct stat status {};
  const int error = follow_link ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (error != 0 || !S_ISREG(status.st_mode)) return 0;
  FileFacts facts;
  facts.device = status.st_dev;
  facts.inode = status.st_ino;
  // A child that is about to run another program has our descriptors for a moment.
  constexpr timespec kMoment{0, 5'000'000};
  for (int i = 0; i < 3 && find_writer(facts); ++i) ::nanosleep(&kMoment, nullptr);
  return find_writer(facts) ? EBUSY : 0;
} catch (const std::exception&) {
  return ENOMEM;
}

int MappedTail::open(int fd, const std::string& path, bool newline_first) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !keeps_room(fd)) return 0;
  if (lock_file(fd, F_WRLCK) == EBUSY) return EBUSY;
  Descriptor again = open_again(fd, path);
  if (!again.is_open()) return 0;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // What a writer that was killed has left.
  const std::uint64_t end = size_without_filler(again.get(), size);
  if (end != size && ::ftruncate(again.get(), static_cast<off_t>(end)) != 0) return errno;
  fd_ = std::move(again);
  file_ = {status.st_dev, status.st_ino};
  goes_on_at(end, newline_first && end == size);
  return 0;
}

}  // namespace perfmap
