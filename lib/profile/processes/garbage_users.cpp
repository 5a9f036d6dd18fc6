#include "processes/garbage_users.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "perfmap/proc_source.hpp"
#include "processes/safe_open.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

pid_t number_of(std::string_view name) noexcept {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

/// Whether the process sees the directory under its path, or may do so for all that we know.
bool may_see(const std::string& process, const Roots& roots, const struct stat& directory) {
  if (!roots.tmp.starts_with('/')) return true;
  const std::string path = process + "/root";
  const OwnedFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return true;
  const OwnedFd found = find_below(root.get(), roots.tmp);
  struct stat status {};
  if (!found.is_open() || ::fstat(found.get(), &status) != 0) return errno != ENOENT;
  // What a link leads to is not asked: in doubt it is this directory.
  if (S_ISLNK(status.st_mode)) return true;
  return status.st_dev == directory.st_dev && status.st_ino == directory.st_ino;
}

}  // namespace

struct GarbageUsers::Looking {
  const Roots& roots;
  const struct stat& directory;
  std::int64_t boot_ns;
};

const std::vector<PidUser>& GarbageUsers::of_pid(pid_t pid) const {
  static const std::vector<PidUser> kNobody;
  const auto found = pids_.find(pid);
  return found == pids_.end() ? kNobody : found->second;
}

pid_t GarbageUsers::of_file(std::uint64_t inode) const {
  const auto found = files_.find(inode);
  return found == files_.end() ? 0 : found->second;
}

void GarbageUsers::look_at(pid_t pid, const Looking& looking) {
  const std::string path = looking.roots.proc + "/" + std::to_string(pid);
  const auto process = ProcSource::open(pid, looking.roots);
  if (process && !*process) return;
  if (!process) {  // it is there, and does not say since when
    pids_[pid].push_back({pid, INT64_MIN, true});
    return;
  }
  const std::int64_t start = start_time_ns(**process, looking.boot_ns);
  pids_[pid].push_back({pid, start, true});
  if (const auto status = (*process)->status(); status && *status) {
    for (const pid_t inner : (*status)->namespace_tgids) {
      if (inner == pid || !may_see(path, looking.roots, looking.directory)) continue;
      pids_[inner].push_back({pid, start, false});
    }
  }
  const auto use = [&](std::uint64_t inode) {
    if (const auto file = files_.find(inode); file != files_.end()) file->second = pid;
  };
  MappedFiles files;
  if (const auto map = (*process)->memory_map(files); map && *map) {
    // File systems such as overlayfs tell maps another device: the inode alone is believed.
    for (const Region& region : (*map)->regions) use(region.file->inode);
  }
  const Directory opened(::opendir((path + "/fd").c_str()));
  while (const dirent* const entry = opened ? ::readdir(opened.get()) : nullptr) {
    struct statx status {};
    const int at = ::dirfd(opened.get());
    if (::statx(at, entry->d_name, AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) continue;
    if (makedev(status.stx_dev_major, status.stx_dev_minor) != looking.directory.st_dev) continue;
    use(status.stx_ino);
  }
}

Result<GarbageUsers> GarbageUsers::look(const Roots& roots, const OwnedFd& directory,
                                        const std::vector<std::uint64_t>& inodes) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) {
    return Failure(system_error("cannot open " + roots.tmp, errno));
  }
  const Directory proc(::opendir(roots.proc.c_str()));
  if (!proc) return Failure(system_error("cannot open " + roots.proc, errno));
  GarbageUsers users;
  for (const std::uint64_t inode : inodes) users.files_.emplace(inode, 0);
  const Looking looking{roots, status, boot_time_ns(roots.proc)};
  while (const dirent* const entry = ::readdir(proc.get())) {
    if (const pid_t pid = number_of(entry->d_name); pid > 0) users.look_at(pid, looking);
  }
  return users;
}

bool shows_whole_machine(const std::string& proc) {
  const OwnedFd directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || !is_on_procfs(directory.get())) return true;
  // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
  constexpr std::string_view kFirst = "pid:[4026531836]";
  std::array<char, 64> target;
  const ssize_t size = ::readlinkat(directory.get(), "self/ns/pid", target.data(), target.size());
  return size >= 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == kFirst;
}

}  // namespace perfmap
