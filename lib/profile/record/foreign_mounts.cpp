// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
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

/// Whether a process has the file open.
bool has_open(pid_t pid, const struct stat& file, const Roots& roots) {
  constexpr int kMaxOpen = 4096;
  const std::string path = roots.proc + "/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(path.c_str()), ::closedir);
  for (int i = 0; list != nullptr && i < kMaxOpen; ++i) {
    const dirent* const entry = ::readdir(list.get());
    struct stat status {};
    if (entry == nullptr) break;
    if (::fstatat(::dirfd(list.get()), entry->d_name, &status, 0) == 0 && is_same(status, file)) {
      return true;
    }
  }
  return false;
}

}  // namespace

struct ForeignMounts::Held {
  pid_t pid = 0;
  pid_t inner = 0;  ///< the pid inside its namespace, which names its files
  uid_t uid = 0;
  std::int64_t began_ns = 0;    ///< on the clock of file times
  bool is_shared = false;       ///< it is the caller's /tmp
  bool has_outer_name = false;  ///< its map: see rename_maps()
  pid_t other_writer = 0;       ///< a process that had its map open, too
  Descriptor tmp;  ///< its /tmp, which a descriptor keeps after the namespace has ended
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
    held->pid = pid;
    held->inner = inner;
    held->uid = (*status)->uid;
    held->began_ns = start_time_ns(**process, roots_.proc);
    held->is_shared = is_same(place, own);
    held->tmp = std::move(tmp);
    held->place = place;
  }
}

bool ForeignMounts::rename_maps() {
  bool renamed_any = false;
  for (Held& held : held_) {
    if (!held.is_shared || held.other_writer != 0) continue;
    const std::string inner = kMapName.of(held.inner), outer = kMapName.of(held.pid);
    const std::string& name = held.has_outer_name ? outer : inner;
    struct stat file {};
    if (::fstatat(held.tmp.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool is_its = S_ISREG(file.st_mode) && file.st_nlink == 1 &&
                        (file.st_uid == held.uid || file.st_uid == 0);
    if (!is_its || !(held.has_outer_name || has_open(held.pid, file, roots_))) continue;
    const auto is_another = [&](const Held& other) {
      return other.pid != held.pid && other.inner == held.inner && other.is_shared &&
             !other.has_outer_name && has_open(other.pid, file, roots_);
    };
    const auto another = std::ranges::find_if(held_, is_another);
    const auto rename = [&](const std::string& from, const std::string& to) {
      return ::renameat2(held.tmp.get(), from.c_str(), held.tmp.get(), to.c_str(),
                         RENAME_NOREPLACE) == 0;
    };
    if (another != held_.end()) {
      held.other_writer = another->pid;
      another->other_writer = held.pid;
      held.has_outer_name = held.has_outer_name && !rename(outer, inner);
    } else if (!held.has_outer_name) {
      held.has_outer_name = rename(inner, outer);
      renamed_any = renamed_any || held.has_outer_name;
    }
  }
  return renamed_any;
}

/// Of processes with one /tmp and one inner pid, as in containers that were started one after the
/// other, the last one that may have written a file has it, unless another one lived then, too.
class ForeignMounts::Search {
 public:
  Search(const std::vector<Held>& held, std::span<const ProcessInfo> processes, const Roots& roots)
      : held_(held), processes_(processes), roots_(roots) {}

  void keep(NameKeeper& keeper, const Held& held, const std::string& name) const;
  void keep_overwritten(NameKeeper& keeper, const Held& held) const;
  bool is_ended(const Held& held) const {
    return info_of(held) != nullptr && !process_lives(held.pid, roots_);
  }

 private:
  const ProcessInfo* info_of(const Held& held) const {
    const auto found = std::ranges::find(processes_, held.pid, &ProcessInfo::pid);
    return found == processes_.end() ? nullptr : &*found;
  }
  bool has_same_names(const Held& a, const Held& b) const {
    return a.pid != b.pid && a.inner == b.inner && is_same(a.place, b.place) && !b.has_outer_name &&
           info_of(b) != nullptr;
  }
  std::string path_of(const Held& held, const std::string& name) const {
    return (held.is_shared ? roots_.tmp : "/tmp") + "/" + name;
  }
  static std::string reason_of(const std::array<pid_t, 2>& writers, pid_t inner) {
    return "processes " + std::to_string(writers[0]) + " and " + std::to_string(writers[1]) +
           " wrote it at the same time, each as process " + std::to_string(inner) +
           " of its pid namespace, so the JIT code of both has no names (give each a /tmp of its "
           "own: unshare --mount, then mount -t tmpfs none /tmp)";
  }
  static bool may_have_written(const Held& held, const FileFacts& file) {
    return file.mtime_ns + kTimeSlack >= held.began_ns;
  }

  const std::vector<Held>& held_;
  std::span<const ProcessInfo> processes_;
  const Roots& roots_;
};

void ForeignMounts::Search::keep(NameKeeper& keeper, const Held& held,
                                 const std::string& name) const {
  OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  policy.owners = {held.uid, 0};
  policy.one_name = true;
  policy.keep_descriptor = false;
  const Result<Input> input =
      Input::open_below(held.tmp.get(), "/" + name, path_of(held, name), policy);
  if (!input || !may_have_written(held, input->facts())) return;
  const ProcessInfo& process = *info_of(held);
  for (const Held& other : held_) {
    if (!has_same_names(held, other) || !may_have_written(other, input->facts())) continue;
    const ProcessInfo& info = *info_of(other);
    if (info.since > process.since) return;
    if (info.until <= process.since) continue;
    const std::array writers = {info.pid, process.pid};
    return keeper.refuse(writers, *input, reason_of(writers, held.inner));
  }
  keeper.add(held.pid, *input, is_dump_path(name));
}

/// A third process may have overwritten the map that two of them wrote.
void ForeignMounts::Search::keep_overwritten(NameKeeper& keeper, const Held& held) const {
  const bool is_known = std::ranges::any_of(keeper.missing(), [&](const MissingFile& missing) {
    return missing.pid == held.pid && !is_dump_path(missing.source);
  });
  if (held.other_writer == 0 || is_known) return;
  const std::array writers = {held.other_writer, held.pid};
  keeper.lose(writers, path_of(held, kMapName.of(held.inner)), reason_of(writers, held.inner));
}

std::size_t ForeignMounts::keep(NameKeeper& keeper, std::span<const ProcessInfo> processes) const {
  const std::size_t before = keeper.files().size();
  const Search search(held_, processes, roots_);
  for (const Held& held : held_) {
    if (!search.is_ended(held)) continue;
    for (const std::string& name : names_of(held.tmp.get(), held.inner)) {
      search.keep(keeper, held, name);
    }
  }
  for (const Held& held : held_) {
    if (search.is_ended(held)) search.keep_overwritten(keeper, held);
  }
  return keeper.files().size() - before;
}

}  // namespace perfmap
