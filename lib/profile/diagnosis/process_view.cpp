#include "diagnosis/process_view.hpp"

#include <array>
#include <sys/stat.h>
#include <unistd.h>

namespace perfmap {
namespace {

Error gone(pid_t pid) {
  return {Errc::not_found, "no process " + std::to_string(pid) + " (any more)", 0, {}};
}

/// Moves an answer out; if it is an error, false and `error`.
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

/// By the program's name, else the names of its memory, else those of its libraries.
FoundRuntime recognise(const ProcessView& view) {
  if (const RuntimeInfo* const row = runtime_of_program(view.executable)) {
    return {row->runtime, "executable " + view.executable, {}, true};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.access.execute ? runtime_of_region(name) : nullptr;
    if (row != nullptr) return {row->runtime, "memory called " + name, {}};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.file->is_file() ? runtime_of_library(name) : nullptr;
    if (row != nullptr) return {row->runtime, "library " + name, {}};
  }
  return {};
}

/// The digits and points that follow the runtime's name in a file name of the process's: "3.11".
std::string version_in_names(const ProcessView& view, const ProcessSigns& signs) {
  const auto digits = [](std::string_view rest) {
    std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
    while (version.ends_with('.')) version.remove_suffix(1);
    return std::string(version);
  };
  const std::string_view program = base_name(view.executable);
  if (program.starts_with(signs.version_program)) {
    std::string found = digits(program.substr(signs.version_program.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  for (const Region& region : view.memory.regions) {
    const std::string_view name = base_name(region.file->name);
    if (!region.file->is_file() || !name.starts_with(signs.version_library)) continue;
    std::string found = digits(name.substr(signs.version_library.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  return {};
}

std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string version_in_release(const ProcSource& process, const std::string& path,
                               const ProcessSigns& signs) {
  constexpr std::uint64_t kMax = 64 << 10;
  const OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  const auto file = process.open_below_root(path, policy);
  if (!file || !*file) return {};
  return signs.release_version((*file)->text().substr(0, kMax));
}

/// Above lib/server/libjvm.so, or above jre/lib/amd64/server/libjvm.so.
std::string version_in_release(const ProcSource& process, const ProcessView& view,
                               const ProcessSigns& signs) {
  for (const Region& region : view.memory.regions) {
    if (!region.file->is_file() ||
        !base_name(region.file->name).starts_with(signs.release_library)) {
      continue;
    }
    std::string_view home = parent_of(parent_of(region.file->name));
    for (int up = 0; up < 3; ++up) {
      home = parent_of(home);
      std::string found = version_in_release(process, std::string(home) + "/release", signs);
      if (!found.empty()) return found;
    }
    return {};
  }
  return {};
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
  // A process that overwrites its arguments to show a title leaves NULs after it.
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

FoundRuntime find_runtime(const ProcessView& view) {
  FoundRuntime found = recognise(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.version_library.empty()) found.version = version_in_names(view, signs);
  return found;
}

FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view) {
  FoundRuntime found = find_runtime(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.release_library.empty()) found.version = version_in_release(process, view, signs);
  return found;
}

}  // namespace perfmap
