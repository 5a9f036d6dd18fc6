// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <climits>
#include <fcntl.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "base/directory.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> path = {};
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : link;
}

/// The regular files that a process has open for writing, by device and inode.
std::set<RecordedPlaces::FileKey> written_by(pid_t pid, const Roots& roots) {
  constexpr int kMaxOpen = 4096;
  const std::string path = roots.proc + "/" + std::to_string(pid) + "/fd";
  const Descriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::set<RecordedPlaces::FileKey> files;
  int seen = 0;
  visit_names(directory.get(), ".", [&](const char* name) {
    struct stat link {};
    struct stat status {};
    // The mode of the link says how the file is open.
    if (::fstatat(directory.get(), name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
        (link.st_mode & S_IWUSR) != 0 && ::fstatat(directory.get(), name, &status, 0) == 0 &&
        S_ISREG(status.st_mode)) {
      files.emplace(status.st_dev, status.st_ino);
    }
    return ++seen < kMaxOpen;
  });
  return files;
}

}  // namespace

RecordedPlaces::RecordedPlaces(RecordedPlaces&& other) noexcept
    : roots_(std::move(other.roots_)),
      places_(std::exchange(other.places_, {})),
      inner_(std::move(other.inner_)),
      written_(std::move(other.written_)) {}

RecordedPlaces::~RecordedPlaces() {
  for (const Place& place : places_) ::close(place.directory);
}

void RecordedPlaces::look(std::span<const pid_t> pids) {
  constexpr std::size_t kMaxPlaces = 64;  // descriptors
  constexpr std::size_t kMaxPids = 1 << 16;
  for (const pid_t pid : pids) {
    const std::string path = roots_.proc + "/" + std::to_string(pid) + "/cwd";
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && places_.size() < kMaxPlaces) {
      const auto is_it = [&](const Place& one) {
        return one.device == status.st_dev && one.inode == status.st_ino;
      };
      Descriptor directory;
      if (std::ranges::none_of(places_, is_it)) {
        directory = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      }
      if (directory.is_open() && ::fstat(directory.get(), &status) == 0) {
        places_.push_back({target_of(path), directory.release(), status.st_dev, status.st_ino});
      }
    }
    if (!inner_.contains(pid) && inner_.size() < kMaxPids) {
      const auto process = ProcSource::open(pid, roots_);
      if (!process || !*process) continue;
      const auto facts = (*process)->status();
      if (!facts || !*facts || (*facts)->namespace_pids.empty()) continue;
      inner_.emplace(pid, (*facts)->namespace_pids.back());
    }
    if (inner_pid(pid) == pid || written_.size() >= kMaxPids) continue;
    for (const FileKey& file : written_by(pid, roots_)) written_.emplace(pid, file);
  }
}

pid_t RecordedPlaces::inner_pid(pid_t pid) const {
  const auto found = inner_.find(pid);
  return found == inner_.end() ? pid : found->second;
}

bool RecordedPlaces::wrote(pid_t pid, const FileKey& file) const {
  return written_.contains({pid, file}) && !written_by(inner_pid(pid), roots_).contains(file);
}

bool RecordedPlaces::is_file_of(pid_t named, pid_t pid, const FileKey& file) const {
  return named == pid || (named == inner_pid(pid) && wrote(pid, file));
}

bool RecordedPlaces::is_shared(pid_t pid, const Input& file) const {
  const std::string name = file.name().substr(file.name().rfind('/') + 1);
  const auto named = is_dump_path(name) ? dump_pid_in(name) : kMapName.pid_in(name);
  struct stat status {};
  return named != static_cast<std::uint64_t>(pid) &&
         named == static_cast<std::uint64_t>(inner_pid(pid)) &&
         ::lstat((roots_.tmp + "/" + name).c_str(), &status) == 0 &&
         status.st_dev == file.facts().device && status.st_ino == file.facts().inode;
}

}  // namespace perfmap
