#include <algorithm>
#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/descriptor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

bool is_same(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The names of the map and the jitdumps of a process that may be in a directory: Bun's have random
/// characters.
std::vector<std::string> names_of(int directory, pid_t pid) {
  std::vector<std::string> names = {kMapName.of(pid), kDumpName.of(pid)};
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(copy < 0 ? nullptr : ::fdopendir(copy),
                                                 ::closedir);
  constexpr std::size_t kMaxNames = 64;
  while (const dirent* const entry = list == nullptr ? nullptr : ::readdir(list.get())) {
    const bool is_its = dump_pid_in(entry->d_name) == static_cast<std::uint64_t>(pid);
    if (is_its && names.size() < kMaxNames) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

struct ForeignMounts::Held {
  pid_t pid = 0;
  pid_t inner = 0;  ///< the pid inside its namespace, which names its files
  uid_t uid = 0;
  Descriptor tmp;  ///< its /tmp, which a descriptor keeps after the namespace has ended
  struct stat place {};
};

ForeignMounts::ForeignMounts(Roots roots) : roots_(std::move(roots)) {}
ForeignMounts::ForeignMounts(ForeignMounts&&) noexcept = default;
ForeignMounts::~ForeignMounts() = default;

void ForeignMounts::look(std::span<const pid_t> pids) {
  constexpr std::size_t kMaxHeld = 256;  // descriptors
  struct stat own {};
  if (::stat(roots_.tmp.c_str(), &own) != 0) return;
  for (const pid_t pid : pids) {
    const std::string path = roots_.proc + "/" + std::to_string(pid) + "/root/tmp";
    struct stat place {};
    if (::stat(path.c_str(), &place) != 0 || is_same(place, own)) continue;
    auto held = std::ranges::find(held_, pid, &Held::pid);
    if (held != held_.end() && is_same(held->place, place)) continue;
    const auto process = ProcSource::open(pid, roots_);
    if (!process || !*process) continue;
    const auto status = (*process)->status();
    Descriptor tmp(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!status || !*status || !tmp.is_open() || ::fstat(tmp.get(), &place) != 0) continue;
    if (held == held_.end()) {
      if (held_.size() == kMaxHeld) return;
      held = held_.insert(held_.end(), Held());
    }
    const std::vector<pid_t>& inner = (*status)->namespace_pids;
    held->pid = pid;
    held->inner = inner.empty() ? pid : inner.back();
    held->uid = (*status)->uid;
    held->tmp = std::move(tmp);
    held->place = place;
  }
}

std::size_t ForeignMounts::keep(NameKeeper& keeper, std::span<const ProcessInfo> processes) const {
  const std::size_t before = keeper.files().size();
  for (const Held& held : held_) {
    const auto is_it = [&](const ProcessInfo& one) { return one.pid == held.pid; };
    if (!std::ranges::any_of(processes, is_it) || process_lives(held.pid, roots_)) continue;
    OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
    policy.owners = {held.uid, 0};
    policy.one_name = true;
    policy.keep_descriptor = false;
    for (const std::string& name : names_of(held.tmp.get(), held.inner)) {
      const Result<Input> input =
          Input::open_below(held.tmp.get(), "/" + name, "/tmp/" + name, policy);
      if (input) keeper.add(held.pid, *input, is_dump_path(name));
    }
  }
  return keeper.files().size() - before;
}

}  // namespace perfmap
