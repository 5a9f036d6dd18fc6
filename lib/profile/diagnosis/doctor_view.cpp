#include "diagnosis/doctor_view.hpp"

#include <array>
#include <sys/stat.h>
#include <unistd.h>

namespace perfmap {
namespace {

Error gone(pid_t pid) {
  return {Errc::not_found, "no process " + std::to_string(pid) + " (any more)", 0, {}};
}

/// Takes an answer over; false, and `error`, where there is none.
template <class T>
bool take(ProcSource::Seen<T> seen, T& into, pid_t pid, Error& error) {
  if (!seen) {
    error = std::move(seen.error());
    return false;
  }
  if (!*seen) {
    error = gone(pid);
    return false;
  }
  into = **std::move(seen);
  return true;
}

std::string without_deleted(std::string path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

/// The mount namespace that perf would run in: ours.
std::string own_mounts(const Roots& roots) {
  std::array<char, 64> target;
  const std::string link = roots.proc + "/self/ns/mnt";
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(size));
}

bool shares_directory(const ProcSource& process, const std::string& path) {
  struct stat ours {};
  if (!path.starts_with('/') || ::stat(path.c_str(), &ours) != 0) return false;
  // The link /tmp of a process may lead to where ours leads; below its root it has to be followed.
  const auto theirs = process.look_below_root(path + "/.");
  return theirs && *theirs && (*theirs)->device == ours.st_dev && (*theirs)->inode == ours.st_ino;
}

}  // namespace

std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

Result<ProcessView> view_process(const ProcSource& process, const Roots& roots, bool is_snapshot) {
  ProcessView view;
  Error error;
  view.pid = process.pid();
  MappedFiles files;
  if (!take(process.status(), view.status, view.pid, error) ||
      !take(process.memory_map(files), view.memory, view.pid, error)) {
    return Failure(std::move(error));
  }
  // Snapshots seldom have one.
  const bool has_arguments = take(process.command_line(), view.arguments, view.pid, error);
  if (!has_arguments && error.code != Errc::not_found) return Failure(std::move(error));
  // What overwrites its arguments, to show a title, leaves NULs behind it.
  while (!view.arguments.empty() && view.arguments.back().empty()) view.arguments.pop_back();
  // A kernel thread has no program, and who may read the map may lack the rest.
  if (take(process.executable(), view.executable, view.pid, error)) {
    view.executable = without_deleted(std::move(view.executable));
  }
  take(process.environment(), view.environment, view.pid, error);
  const auto& tgids = view.status.namespace_tgids;
  view.inner = tgids.empty() || tgids.back() <= 0 ? view.pid : tgids.back();
  if (is_snapshot) return view;
  view.shares_tmp = shares_directory(process, roots.tmp);
  const auto mounts = process.mount_namespace();
  const std::string ours = own_mounts(roots);
  view.other_mounts = mounts && *mounts && !ours.empty() ? **mounts != ours : !view.shares_tmp;
  if (!process.is_alive()) return Failure(gone(view.pid));
  return view;
}

}  // namespace perfmap
