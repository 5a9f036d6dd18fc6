#include "module/module_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfmap {
namespace {

/// An O_PATH descriptor: it identifies a file but cannot read it.
class Handle {
 public:
  explicit Handle(int fd) noexcept : fd_(fd) {}
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

Handle root_handle(const std::string& root) {
  return Handle(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/// Finds the same file as Input::open_below().
Handle handle_below(const Handle& root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return Handle(
      static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
}

/// False if the file does not exist.
bool look_at(const std::string& root, const std::string& path, struct stat& status) {
  if (root.empty()) return ::stat(path.c_str(), &status) == 0;
  const Handle directory = root_handle(root);
  if (!directory.is_open()) return false;
  const Handle file = handle_below(directory, path);
  return file.is_open() && ::fstat(file.get(), &status) == 0;
}

}  // namespace

Result<Input> open_module_file(const std::string& root, const std::string& path) {
  const OpenPolicy policy{.regular_only = true, .bounded = true, .keep_descriptor = false};
  struct stat status {};
  if (look_at(root, path, status) && !S_ISREG(status.st_mode)) {
    return Failure({Errc::refused, "cannot open " + root + path + ": not a regular file", 0, {}});
  }
  if (root.empty()) return Input::open(path, policy);
  const Handle directory = root_handle(root);
  if (!directory.is_open()) return Failure(system_error("cannot open " + root, errno));
  return Input::open_below(directory.get(), path, root + path, policy);
}

std::optional<FileKey> key_of_module_file(const std::string& root, const std::string& path) {
  struct stat status {};
  if (!look_at(root, path, status) || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileKey{status.st_dev, status.st_ino,
                 status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                 static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace perfmap
