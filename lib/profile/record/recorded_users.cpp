// SPDX-License-Identifier: MIT
#include <algorithm>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {

void RecordedUsers::look(std::span<const pid_t> pids) {
  constexpr std::size_t kMaxPairs = 1 << 20;
  for (const pid_t pid : pids) {
    struct stat status {};
    const std::string path = roots_.proc + "/" + std::to_string(pid);
    if (::stat(path.c_str(), &status) != 0 || seen_.size() == kMaxPairs) continue;
    if (seen_.contains({pid, status.st_uid})) continue;
    const Descriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    Result<ProcessRights> rights = ProcessRights::of(directory.get());
    if (!rights) continue;
    rights_.insert_or_assign(pid, *std::move(rights));
    seen_.emplace(pid, status.st_uid);
  }
}

std::vector<pid_t> RecordedUsers::pids() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, user] : seen_) {
    if (pids.empty() || pids.back() != pid) pids.push_back(pid);
  }
  return pids;
}

bool RecordedUsers::ran_as(pid_t pid, uid_t user) const { return seen_.contains({pid, user}); }

bool RecordedUsers::may_remove(pid_t pid, uid_t owner) const {
  return rights_.contains(pid) ? ran_as(pid, owner) : owner == ::geteuid();
}

const ProcessRights& RecordedUsers::rights(pid_t pid) const {
  static const ProcessRights own;
  const auto found = rights_.find(pid);
  return found == rights_.end() ? own : found->second;
}

bool RecordedUsers::ran_as(uid_t user) const {
  return std::ranges::any_of(seen_, [user](const auto& one) { return one.second == user; });
}

}  // namespace perfmap
