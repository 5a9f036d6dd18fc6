// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_set>
#include <vector>

#include "base/directory.hpp"
#include "perfmap/profile/record.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// The threads of a process: each may have started children.
std::vector<std::string> threads_of(const std::string& process) {
  constexpr std::size_t kMaxThreads = 65536;
  std::vector<std::string> threads;
  visit_names(AT_FDCWD, (process + "/task").c_str(), [&](const char* name) {
    if (*name != '.') threads.push_back(process + "/task/" + name);
    return threads.size() < kMaxThreads;
  });
  return threads;
}

/// The text of /proc/PID/stat; empty if there is no such process.
std::string stat_text(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether a process descends from this one, and began before that clock tick ended.
bool is_descendant_since(pid_t pid, std::uint64_t tick) {
  constexpr int kMaxDepth = 4096;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const std::string text = stat_text(pid);
    const std::optional<StatLine> line = parse_stat(text);
    if (!line || (depth == 0 && line->start > tick)) return false;
    if (line->parent == ::getpid()) return true;
    pid = line->parent;
  }
  return false;
}

/// The current time, in the unit of start times in /proc.
std::uint64_t clock_tick() noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * ticks +
         static_cast<std::uint64_t>(now.tv_nsec) * ticks / kSecond;
}

/// The descriptor comes first: what is then read about the pid is about the process that it holds,
/// or that process has ended, and gets nothing.
bool signal_descendant(pid_t pid, int signal, std::uint64_t tick) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return process.is_open() && ::getpgid(pid) == ::getpgrp() && is_descendant_since(pid, tick) &&
         ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

/// What ioctl(2) tells about a process that a descriptor holds, since Linux 6.15: more recent than
/// the headers of the oldest systems.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::array<std::uint32_t, 11> ids;
  std::int32_t exit_code;  ///< as wait(2) tells it
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kPidfdInfoExit = 8;

}  // namespace

ProcessEnd process_end(int wait_status) noexcept {
  constexpr int kSignaled = 128;
  if (!WIFSIGNALED(wait_status)) return {WEXITSTATUS(wait_status), 0};
  return {kSignaled + WTERMSIG(wait_status), WTERMSIG(wait_status)};
}

HeldProcess::HeldProcess(pid_t pid) noexcept
    : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

HeldProcess::~HeldProcess() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool HeldProcess::lives() const noexcept {
  pollfd end{descriptor_, POLLIN, 0};
  return descriptor_ >= 0 && ::poll(&end, 1, 0) == 0;
}

std::optional<ProcessEnd> HeldProcess::end() const noexcept {
  constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (descriptor_ < 0 || ::ioctl(descriptor_, kGetInfo, &info) != 0) return std::nullopt;
  if ((info.mask & kPidfdInfoExit) == 0) return std::nullopt;
  return process_end(info.exit_code);
}

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

OrphanAdopter::OrphanAdopter() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1UL);
}

OrphanAdopter::~OrphanAdopter() {
  ::prctl(PR_SET_CHILD_SUBREAPER, static_cast<unsigned long>(before_));
}

void OrphanAdopter::reap(std::span<const pid_t> pids) noexcept {
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, WNOHANG);
}

std::vector<pid_t> signal_descendants(int signal, pid_t spared) {
  constexpr int kMaxSweeps = 8;
  std::unordered_set<pid_t> seen = {spared};
  std::vector<pid_t> got;
  const std::uint64_t tick = clock_tick();
  // A process may have forked another one after it was listed, and before it got the signal.
  for (int i = 0; i < kMaxSweeps; ++i) {
    bool has_new = false;
    for (const pid_t pid : descendants_of({::getpid()})) {
      if (!seen.insert(pid).second) continue;
      has_new = true;
      if (signal_descendant(pid, signal, tick)) got.push_back(pid);
    }
    if (!has_new) break;
  }
  return got;
}

}  // namespace perfmap
