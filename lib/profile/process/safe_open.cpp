#include "process/safe_open.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/statfs.h>
#include <sys/syscall.h>

namespace perfmap {
namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr std::size_t kBlock = std::size_t{16} << 10;

Failure refused(const std::string& name, const char* why) {
  return Failure({Errc::refused, "cannot open " + name + ": " + why, 0, {}});
}

/// The magic number of its file system: 32 bits, although the field may be wider.
std::uint32_t file_system_of(int fd) noexcept {
  struct statfs about {};
  return ::fstatfs(fd, &about) == 0 ? static_cast<std::uint32_t>(about.f_type) : 0;
}

}  // namespace

Result<ReadText> read_text_at(int directory, const char* file, const std::string& name,
                              std::size_t max) {
  const Descriptor fd(::openat(directory, file, kReadFlags | O_NOFOLLOW));
  if (!fd.is_open() && errno == ELOOP) return refused(name, "it is a symbolic link");
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    return Failure(system_error("cannot open " + name, errno));
  }
  if (!S_ISREG(status.st_mode)) return refused(name, "not a regular file");
  ReadText read;
  std::array<char, kBlock> block;
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(system_error("cannot read " + name, errno));
    if (got == 0) return read;
    const std::size_t room = max - read.text.size();
    read.text.append(block.data(), std::min(room, static_cast<std::size_t>(got)));
    read.was_cut = static_cast<std::size_t>(got) > room;
    if (read.was_cut) return read;
  }
}

bool is_on_procfs(int fd) noexcept { return file_system_of(fd) == PROC_SUPER_MAGIC; }

bool is_on_kernel_file_system(int fd) noexcept {
  constexpr std::array<std::uint32_t, 9> kKernels = {
      PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC, SECURITYFS_MAGIC,
      BPF_FS_MAGIC,     CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SELINUX_MAGIC};
  return std::find(kKernels.begin(), kKernels.end(), file_system_of(fd)) != kKernels.end();
}

Descriptor find_below(int root, const std::string& path) noexcept {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Descriptor found(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  // EPERM: the answer of a system call filter that does not know openat2(2).
  if (found.is_open() || (errno != ENOSYS && errno != EPERM)) return found;
  return find_below_by_steps(root, path);
}

Descriptor find_below_by_steps(int root, const std::string& path) noexcept {
  Descriptor at(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::string_view rest = path; at.is_open() && !rest.empty();) {
    const std::string_view step = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), step.size() + 1));
    if (step.empty() || step == ".") continue;
    std::array<char, 256> name{};
    if (step == ".." || step.size() >= name.size()) {
      errno = step == ".." ? ELOOP : ENAMETOOLONG;
      return Descriptor();
    }
    step.copy(name.data(), step.size());
    // A link in the middle is not a directory, so the next step fails with ENOTDIR.
    Descriptor next(::openat(at.get(), name.data(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const int error = errno;
    at = std::move(next);
    errno = error;
  }
  return at;
}

Result<Descriptor> open_found(const Descriptor& found, const std::string& name) {
  struct stat status {};
  if (::fstat(found.get(), &status) != 0) {
    return Failure(system_error("cannot open " + name, errno));
  }
  if (S_ISLNK(status.st_mode)) return refused(name, "it is a symbolic link");
  if (!S_ISREG(status.st_mode)) return refused(name, "not a regular file");
  if (is_on_kernel_file_system(found.get())) return refused(name, "a file of the kernel's");
  // This thread's own descriptors: the real /proc, not one below a root that a test or an attacker
  // made.
  const std::string self = "/proc/self/fd/" + std::to_string(found.get());
  Descriptor fd(::open(self.c_str(), kReadFlags));
  if (!fd.is_open()) return Failure(system_error("cannot open " + name, errno));
  return fd;
}

}  // namespace perfmap
