// SPDX-License-Identifier: MIT
#include "process/safe_open.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/syscall.h>

namespace perfmap {
namespace {

constexpr std::size_t kBlock = std::size_t{16} << 10;

}  // namespace

Result<ReadText> read_text_at(int directory, const char* file, const std::string& name,
                              std::size_t max) {
  const Descriptor fd(::openat(directory, file, kReadFound | O_NOFOLLOW));
  if (!fd.is_open() && errno == ELOOP) {
    return Failure(Error::cannot("open", name, Reason::symbolic_link));
  }
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    return Failure(system_error("cannot open", name, errno));
  }
  if (!S_ISREG(status.st_mode)) return Failure(Error::cannot("open", name, Reason::not_regular));
  ReadText read;
  std::array<char, kBlock> block;
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(system_error("cannot read", name, errno));
    if (got == 0) return read;
    const std::size_t room = max - read.text.size();
    read.text.append(block.data(), std::min(room, static_cast<std::size_t>(got)));
    read.was_cut = static_cast<std::size_t>(got) > room;
    if (read.was_cut) return read;
  }
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

}  // namespace perfmap
