// SPDX-License-Identifier: MIT
#include "module/module_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/process_rights.hpp"

namespace perfmap {
namespace {

/// The directory below which a file is opened. If that is the root of a process, /proc/PID/root,
/// its files are opened with the rights of the process.
class ModuleRoot {
 public:
  explicit ModuleRoot(const std::string& path);
  bool is_open() const noexcept { return root_.is_open(); }
  int get() const noexcept { return root_.get(); }

  /// Calls `open`, which returns a Result.
  template <class Open>
  auto open_with(const Open& open) const {
    return process_.is_open() ? open_as_process(process_.get(), open) : open();
  }

 private:
  Descriptor process_;  // not open: `root_` is no process's
  Descriptor root_;
};

constexpr int kDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;

ModuleRoot::ModuleRoot(const std::string& path) {
  constexpr std::string_view kRoot = "/root";
  if (path.ends_with(kRoot)) {
    const std::string directory = path.substr(0, path.size() - kRoot.size());
    process_ = Descriptor(::open(directory.c_str(), kDirectory));
    if (!is_on_procfs(process_.get())) process_ = Descriptor();
  }
  root_ = process_.is_open() ? Descriptor(::openat(process_.get(), "root", kDirectory))
                             : Descriptor(::open(path.c_str(), kDirectory));
}

/// Finds the same file as Input::open_below().
Descriptor handle_below(const ModuleRoot& root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return Descriptor(
      static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
}

/// False if the file does not exist.
bool look_at(const std::string& root, const std::string& path, struct stat& status) {
  if (root.empty()) return ::stat(path.c_str(), &status) == 0;
  const ModuleRoot directory(root);
  if (!directory.is_open()) return false;
  const Result<void> found = directory.open_with([&]() -> Result<void> {
    const Descriptor file = handle_below(directory, path);
    if (file.is_open() && ::fstat(file.get(), &status) == 0) return {};
    return Failure(system_error("cannot open", path, errno));
  });
  return found.has_value();
}

}  // namespace

Result<Input> open_module_file(const std::string& root, const std::string& path) {
  const OpenPolicy policy{.regular_only = true, .bounded = true, .keep_descriptor = false};
  if (root.empty()) return Input::open(path, policy);
  const ModuleRoot directory(root);
  if (!directory.is_open()) return Failure(system_error("cannot open", root, errno));
  return directory.open_with(
      [&] { return Input::open_below(directory.get(), path, root + path, policy); });
}

std::optional<FileKey> key_of_module_file(const std::string& root, const std::string& path) {
  struct stat status {};
  if (!look_at(root, path, status) || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileKey{status.st_dev, status.st_ino,
                 status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                 static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace perfmap
