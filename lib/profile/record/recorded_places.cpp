// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <climits>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> path = {};
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : link;
}

}  // namespace

RecordedPlaces::RecordedPlaces(RecordedPlaces&& other) noexcept
    : roots_(std::move(other.roots_)),
      places_(std::exchange(other.places_, {})),
      inner_(std::move(other.inner_)) {}

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
    if (inner_.contains(pid) || inner_.size() == kMaxPids) continue;
    const auto process = ProcSource::open(pid, roots_);
    if (!process || !*process) continue;
    const auto facts = (*process)->status();
    if (!facts || !*facts || (*facts)->namespace_pids.empty()) continue;
    inner_.emplace(pid, (*facts)->namespace_pids.back());
  }
}

pid_t RecordedPlaces::inner_pid(pid_t pid) const {
  const auto found = inner_.find(pid);
  return found == inner_.end() ? pid : found->second;
}

bool RecordedPlaces::is_pid_of(pid_t named, pid_t pid) const {
  return named == pid || named == inner_pid(pid);
}

}  // namespace perfmap
