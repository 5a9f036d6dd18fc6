#include <algorithm>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

/// The threads of a process: each may have started children.
std::vector<std::string> threads_of(const std::string& process) {
  constexpr std::size_t kMaxThreads = 65536;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir((process + "/task").c_str()),
                                                 ::closedir);
  std::vector<std::string> threads;
  while (const dirent* const entry = list == nullptr ? nullptr : ::readdir(list.get())) {
    if (std::string_view(entry->d_name).starts_with('.')) continue;
    threads.push_back(process + "/task/" + entry->d_name);
    if (threads.size() == kMaxThreads) break;
  }
  return threads;
}

}  // namespace

std::vector<pid_t> descendants_of(std::vector<pid_t> pids, const Roots& roots) {
  constexpr std::size_t kMaxPids = 4096;
  std::unordered_set<pid_t> known(pids.begin(), pids.end());
  const std::size_t first = pids.size();
  for (std::size_t i = 0; i < pids.size(); ++i) {
    for (const std::string& thread : threads_of(roots.proc + "/" + std::to_string(pids[i]))) {
      std::ifstream file(thread + "/children");
      for (pid_t child = 0; pids.size() - first < kMaxPids && file >> child;) {
        if (child > 0 && known.insert(child).second) pids.push_back(child);
      }
    }
  }
  pids.erase(pids.begin(), pids.begin() + static_cast<std::ptrdiff_t>(first));
  return pids;
}

}  // namespace perfmap
