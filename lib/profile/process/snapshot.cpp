// SPDX-License-Identifier: MIT
#include "perfmap/profile/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/directory.hpp"
#include "base/utf8.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kMaxProcesses = 64;
constexpr std::size_t kMaxManifest = std::size_t{64} << 20;
constexpr const char* kManifest = "manifest.json";

enum class Wanted : std::uint8_t { directory, file, maybe_directory, maybe_file };

/// Checks a path that readers of processes open by name: they trust /proc to hold no links or FIFOs
/// there.
Result<void> check_one(int at, const std::string& path, Wanted wanted, const std::string& name) {
  const bool wants_file = wanted == Wanted::file || wanted == Wanted::maybe_file;
  struct stat status {};
  if (::fstatat(at, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    const bool maybe = wanted == Wanted::maybe_file || wanted == Wanted::maybe_directory;
    if (errno == ENOENT && maybe) return {};
    return Failure(system_error("cannot use the snapshot", name + ": " + path, errno));
  }
  if (wants_file ? S_ISREG(status.st_mode) : S_ISDIR(status.st_mode)) return {};
  const char* const why = wants_file ? " is not a regular file" : " is not a directory";
  return Failure(Error::refused("cannot use the snapshot " + name + ": " + path + why));
}

template <std::size_t N>
Result<void> check_all(int at, const std::array<std::pair<std::string, Wanted>, N>& tree,
                       const std::string& name) {
  for (const auto& [path, wanted] : tree) {
    const Result<void> checked = check_one(at, path, wanted, name);
    if (!checked) return checked;
  }
  return {};
}

Result<void> check_process(int at, const std::string& process, const std::string& name) {
  const std::array<std::pair<std::string, Wanted>, 8> tree = {{
      {process, Wanted::directory},
      {process + "/stat", Wanted::file},
      {process + "/status", Wanted::file},
      {process + "/maps", Wanted::file},
      {process + "/comm", Wanted::maybe_file},
      {process + "/auxv", Wanted::maybe_file},
      {process + "/cmdline", Wanted::maybe_file},
      {process + "/root", Wanted::maybe_directory},
  }};
  return check_all(at, tree, name);
}

/// The ancestors of the process, and all other pids that readers may look for.
Result<std::vector<std::string>> processes_in(int at, const std::string& name) {
  std::vector<std::string> found;
  const auto add = [&found](const char* number) {
    if (all_digits(number)) found.push_back("proc/" + std::string(number));
    return found.size() < kMaxProcesses;
  };
  if (!visit_names(at, "proc", add, O_NOFOLLOW)) {
    return Failure(system_error("cannot use the snapshot", name + ": proc", errno));
  }
  if (found.size() < kMaxProcesses) return found;
  return Failure(Error::too_large("cannot use the snapshot " + name + ": too many processes"));
}

Result<void> check_tree(int at, pid_t pid, const std::string& name) {
  const std::array<std::pair<std::string, Wanted>, 4> tree = {{
      {"proc", Wanted::directory},
      {"tmp", Wanted::directory},
      {"proc/stat", Wanted::maybe_file},
      {"proc/" + std::to_string(pid), Wanted::directory},
  }};
  Result<void> checked = check_all(at, tree, name);
  if (!checked) return checked;
  const Result<std::vector<std::string>> processes = processes_in(at, name);
  if (!processes) return failure(processes);
  for (const std::string& process : *processes) {
    if (checked) checked = check_process(at, process, name);
  }
  return checked;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  std::string whole = std::filesystem::absolute(path, error).string();
  if (error) return path;
  while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  return whole;
}

Descriptor open_directory(const std::string& path) noexcept {
  return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Result<SnapshotManifest> read_manifest(int at, const std::string& directory) {
  const std::string name = directory + "/" + kManifest;
  const Result<ReadText> read = read_text_at(at, kManifest, name, kMaxManifest);
  if (!read) {
    Error error = read.error();
    if (error.code == Errc::not_found) error.code = Errc::unsupported;
    return Failure(std::move(error));
  }
  if (read->was_cut) return Failure(Error::of(Reason::too_large, name));
  Result<SnapshotManifest> manifest = parse_manifest(read->text);
  if (!manifest) manifest.error().prefix("cannot use " + name + ": ");
  return manifest;
}

bool by_path(const SnapshotModule& a, const SnapshotModule& b) noexcept { return a.path < b.path; }

}  // namespace

Snapshot::Snapshot(std::string directory, SnapshotManifest manifest)
    : directory_(std::move(directory)), manifest_(std::move(manifest)) {
  const std::string base = absolute(directory_);
  roots_ = {.proc = base + "/proc", .tmp = base + "/tmp"};
  std::stable_sort(manifest_.modules.begin(), manifest_.modules.end(), by_path);
}

bool Snapshot::is_at(const std::string& directory) noexcept {
  const Descriptor at = open_directory(directory);
  struct stat status {};
  return at.is_open() && ::fstatat(at.get(), kManifest, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Snapshot> Snapshot::open(const std::string& directory) {
  const Descriptor at = open_directory(directory);
  if (!at.is_open()) return Failure(system_error("cannot open", directory, errno));
  Result<SnapshotManifest> manifest = read_manifest(at.get(), directory);
  if (!manifest) return failure(manifest);
  const Result<void> checked = check_tree(at.get(), manifest->pid, directory);
  if (!checked) return failure(checked);
  return Snapshot(directory, *std::move(manifest));
}

std::string_view Snapshot::build_id_of(std::string_view path) const noexcept {
  const auto& modules = manifest_.modules;
  const auto found = std::partition_point(modules.begin(), modules.end(),
                                          [path](const auto& one) { return one.path < path; });
  if (found == modules.end() || found->path != path) return {};
  return found->build_id;
}

Result<std::optional<Input>> Snapshot::vdso() const {
  const auto file =
      std::find_if(manifest_.files.begin(), manifest_.files.end(),
                   [](const SnapshotFile& one) { return one.kind == SnapshotFile::Kind::vdso; });
  if (file == manifest_.files.end()) return std::nullopt;
  const std::string name = directory_ + "/" + file->path;
  const Descriptor at = open_directory(directory_);
  if (!at.is_open()) return Failure(system_error("cannot open", directory_, errno));
  const Descriptor found = find_below(at.get(), file->path);
  if (!found.is_open()) return Failure(system_error("cannot open", name, errno));
  const Result<Descriptor> fd = open_found(found, name);
  if (!fd) return failure(fd);
  Result<Input> input = Input::from_descriptor(
      fd->get(), name, {.follow_link = false, .regular_only = true, .bounded = true});
  if (!input) return failure(input);
  return std::optional<Input>(*std::move(input));
}

using Answer = ModuleCache::Answer;

namespace {

/// The vdso of the snapshot, if it is the requested one.
Answer open_snapshot_vdso(ModuleCache& cache, const Snapshot& snapshot, std::string_view wanted) {
  Result<std::optional<Input>> vdso = snapshot.vdso();
  if (!vdso) return failure(vdso);
  if (!*vdso) return Failure(Error::not_found("the snapshot has no [vdso]"));
  Answer module = cache.open(**std::move(vdso));
  if (!module || wanted.empty() || (*module)->build_id() == wanted) return module;
  return Failure(Error::refused("the snapshot has the [vdso] of another kernel"));
}

}  // namespace

ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                            std::shared_ptr<const Snapshot> snapshot,
                                            std::string root, ExpectedBuildId expected) {
  auto files = open_below(cache, std::move(root), [snapshot, expected](const std::string& path) {
    std::string told = expected ? expected(path) : std::string();
    return told.empty() ? std::string(snapshot->build_id_of(path)) : told;
  });
  return [&cache, snapshot, expected, files = std::move(files)](
             const Region& region, const ProcSource* process) -> Answer {
    const bool is_vdso = region.file != nullptr && region.file->kind == RegionKind::vdso;
    if (!is_vdso) return files(region, process);
    std::string wanted = region.file->build_id;
    if (wanted.empty() && expected) wanted = expected(region.file->name);
    Answer module = open_snapshot_vdso(cache, *snapshot, wanted);
    return module || !expected ? module : files(region, process);
  };
}

}  // namespace perfmap
