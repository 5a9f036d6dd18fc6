// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/descriptor.hpp"
#include "base/directory.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

bool is_same(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The names of the map and the jitdumps of a process that may be in a directory: Bun's have random
/// characters.
std::vector<std::string> names_of(int directory, pid_t pid) {
  std::vector<std::string> names = {kMapName.of(pid), kDumpName.of(pid)};
  constexpr std::size_t kMaxNames = 64;
  visit_names(directory, ".", [&](const char* name) {
    if (dump_pid_in(name) == static_cast<std::uint64_t>(pid)) names.emplace_back(name);
    return names.size() < kMaxNames;
  });
  return names;
}

}  // namespace

struct ForeignMounts::Held {
  pid_t pid = 0;
  pid_t inner = 0;  ///< the pid inside its namespace, which names its files
  uid_t uid = 0;
  ProcessRights rights = {};
  std::int64_t began_ns = 0;  ///< on the clock of file times
  bool is_shared = false;     ///< it is the caller's /tmp
  Descriptor tmp;             ///< its /tmp, which a descriptor keeps after the namespace has ended
  struct stat place {};
};

ForeignMounts::ForeignMounts(Roots roots) : roots_(std::move(roots)) {}
ForeignMounts::ForeignMounts(ForeignMounts&&) noexcept = default;
ForeignMounts::~ForeignMounts() = default;

void ForeignMounts::look(std::span<const pid_t> pids, const RecordedPlaces& places) {
  constexpr std::size_t kMaxHeld = 256;  // descriptors
  struct stat own {};
  if (::stat(roots_.tmp.c_str(), &own) != 0) return;
  for (const pid_t pid : pids) {
    const std::string path = roots_.proc + "/" + std::to_string(pid) + "/root/tmp";
    struct stat place {};
    const pid_t inner = places.inner_pid(pid);
    if (::stat(path.c_str(), &place) != 0 || (is_same(place, own) && inner == pid)) continue;
    auto held = std::ranges::find(held_, pid, &Held::pid);
    const auto process = ProcSource::open(pid, roots_);
    if (!process || !*process) continue;
    const auto status = (*process)->status();
    Descriptor tmp(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto rights = (*process)->rights();  // after its directory was opened
    if (!status || !*status || !rights || !*rights) continue;
    if (!tmp.is_open() || ::fstat(tmp.get(), &place) != 0) continue;
    if (held == held_.end()) {
      if (held_.size() == kMaxHeld) return;
      held = held_.insert(held_.end(), Held());
    }
    held->pid = pid;
    held->inner = inner;
    held->uid = (*status)->uid;
    held->rights = **rights;
    held->began_ns = start_time_ns(**process, roots_.proc);
    held->is_shared = is_same(place, own);
    held->tmp = std::move(tmp);
    held->place = place;
  }
}

/// Of processes with one /tmp and one inner pid, as in containers that were started one after the
/// other, the last one that may have written a file has it, unless another one lived then, too.
class ForeignMounts::Search {
 public:
  Search(const std::vector<Held>& held, std::span<const ProcessInfo> processes,
         const RecordedPlaces& places, const Roots& roots)
      : held_(held), processes_(processes), places_(places), roots_(roots) {}

  void keep(NameKeeper& keeper, const Held& held, const std::string& name) const;
  bool is_ended(const Held& held) const {
    return info_of(held) != nullptr && !process_lives(held.pid, roots_);
  }

 private:
  const ProcessInfo* info_of(const Held& held) const {
    const auto found = std::ranges::find(processes_, held.pid, &ProcessInfo::pid);
    return found == processes_.end() ? nullptr : &*found;
  }
  bool has_same_names(const Held& a, const Held& b) const {
    return a.pid != b.pid && a.inner == b.inner && is_same(a.place, b.place) &&
           info_of(b) != nullptr;
  }
  bool may_have_written(const Held& held, const FileFacts& file) const {
    return held.is_shared ? places_.wrote(held.pid, {file.device, file.inode})
                          : file.mtime_ns + kTimeSlack >= held.began_ns;
  }

  const std::vector<Held>& held_;
  std::span<const ProcessInfo> processes_;
  const RecordedPlaces& places_;
  const Roots& roots_;
};

void ForeignMounts::Search::keep(NameKeeper& keeper, const Held& held,
                                 const std::string& name) const {
  OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  policy.owners = {held.uid, 0};
  policy.one_name = true;
  policy.keep_descriptor = false;
  const std::string path = (held.is_shared ? roots_.tmp : "/tmp") + "/" + name;
  const Result<Input> input =
      held.rights.with([&] { return Input::open_below(held.tmp.get(), "/" + name, path, policy); });
  if (!input || input->facts().mtime_ns + kTimeSlack < held.began_ns) return;
  const ProcessInfo& process = *info_of(held);
  for (const Held& other : held_) {
    if (!has_same_names(held, other) || !may_have_written(other, input->facts())) continue;
    const ProcessInfo& info = *info_of(other);
    if (!may_have_written(held, input->facts())) return;
    if (info.until <= process.since) continue;
    const bool is_overwritten = process.until <= info.since;
    if (info.since > process.since && !(is_overwritten && held.is_shared)) return;
    const std::string why =
        "processes " + std::to_string(process.pid) + " and " + std::to_string(info.pid) +
        " wrote it" + (is_overwritten ? "" : " at the same time") + ", each as process " +
        std::to_string(held.inner) + " of its pid namespace, so the JIT code of " +
        (is_overwritten ? "the first" : "both") + " has no names" +
        std::string(NameKeeper::kOwnTmp);
    const std::array writers = {process.pid, info.pid};
    return is_overwritten ? keeper.lose({&process.pid, 1}, path, why)
                          : keeper.refuse(writers, *input, why);
  }
  keeper.add(held.pid, *input, is_dump_path(name));
}

std::size_t ForeignMounts::keep(NameKeeper& keeper, std::span<const ProcessInfo> processes,
                                const RecordedPlaces& places) const {
  const std::size_t before = keeper.files().size();
  const Search search(held_, processes, places, roots_);
  for (const Held& held : held_) {
    if (!search.is_ended(held)) continue;
    for (const std::string& name : names_of(held.tmp.get(), held.inner)) {
      search.keep(keeper, held, name);
    }
  }
  return keeper.files().size() - before;
}

}  // namespace perfmap
