#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "perfmap/stack_sample.hpp"

namespace perfmap {

/// The samples of a thread and an event, as columns: sixteen bytes each.
struct ThreadProfile {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t event = 0;
  std::string comm;  ///< the last
  std::string process_comm;
  std::vector<std::uint32_t> stacks;
  std::vector<std::uint64_t> times;  ///< since the first sample of the profile
  /// Periods; where they do not fit, the highest there is.
  std::vector<std::uint32_t> periods;
};

/// In the order of pid, tid and event.
class ThreadProfiles {
 public:
  using Key = std::tuple<pid_t, pid_t, std::uint32_t>;

  /// The profile that a sample belongs to.
  ThreadProfile& of(const StackSample& sample) {
    ThreadProfile& profile = profiles_[{sample.pid, sample.tid, sample.event}];
    profile.pid = sample.pid;
    profile.tid = sample.tid;
    profile.event = sample.event;
    if (profile.comm != sample.comm) profile.comm = sample.comm;
    if (profile.process_comm != sample.process_comm) profile.process_comm = sample.process_comm;
    return profile;
  }
  auto begin() const { return profiles_.begin(); }
  auto end() const { return profiles_.end(); }

 private:
  std::map<Key, ThreadProfile> profiles_;
};

}  // namespace perfmap
