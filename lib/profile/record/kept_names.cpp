// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/directory.hpp"
#include "perfmap/profile/record.hpp"
#include "perfmap/pypylog.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// Collects the processes of the events.
struct ProcessList {
  std::map<pid_t, ProcessInfo> by_pid;

  ProcessInfo& of(pid_t pid, std::uint64_t time) {
    const auto [found, is_new] = by_pid.try_emplace(pid);
    if (is_new) {
      found->second.pid = pid;
      found->second.since = time;
    }
    return found->second;
  }
  void on_mmap(const MmapEvent& event) { of(event.pid, event.time); }
  void on_comm(const CommEvent& event) { of(event.pid, event.time).take(event); }
  void on_fork(const ForkEvent& event) {
    if (event.pid == event.parent) return;  // a thread
    ProcessInfo& process = of(event.pid, event.time);
    process.began = ProcessBegin::forked;
    process.parent = event.parent;
  }
  void on_exit(const ExitEvent& event) { of(event.pid, event.time).until = event.time; }
};

/// The name of a copy: that of the file, but a map is named by the pid of the recording, which in a
/// container differs from the pid in the file's name.
std::string name_of_copy(pid_t pid, const std::string& source, bool is_dump) {
  if (!is_dump) return kMapName.of(pid);
  return source.substr(source.rfind('/') + 1);
}

/// The pid of digits; nothing for other text.
std::optional<pid_t> pid_of(std::string_view digits) {
  pid_t pid = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const bool is_whole = error == std::errc() && stop == digits.data() + digits.size() && pid > 0;
  return is_whole ? std::optional(pid) : std::nullopt;
}

/// The perf map of a log with loops and their addresses; empty if there are none.
Result<MapText> map_of_log(const std::string& path, pid_t pid, const RecordedUsers& users) {
  const OpenPolicy kFile{
      .follow_link = false, .regular_only = true, .bounded = true, .one_name = true};
  const Result<Input> log = Input::open(path, kFile);
  if (!log) return failure(log);
  const uid_t owner = log->facts().uid;
  if (owner != ::geteuid() && !users.ran_as(pid, owner)) {
    return Failure(Error::cannot("use", path, Reason::foreign_owner));
  }
  LoopProfile profile({});
  read_pypylog(*log, profile);
  profile.finish();
  return map_of_loops(profile.loops());
}

/// A file of a directory, as lstat(2) sees it.
bool look_at(int directory, const std::string& name, struct stat& status) noexcept {
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::int64_t ns_of(const timespec& time) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

bool is_of_recording(const struct stat& status, std::int64_t began_ns) noexcept {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 &&
         ns_of(status.st_mtim) + kTimeSlack >= began_ns;
}

/// The pid in "isolate-0x55d0c8a2f000-1234-v8.log": digits after the last '-' before the suffix.
std::optional<pid_t> pid_of_left_file(std::string_view name, const StartedNaming& started) {
  if (started.left_suffix.empty() || !name.starts_with(started.left_prefix) ||
      !name.ends_with(started.left_suffix)) {
    return std::nullopt;
  }
  name.remove_suffix(started.left_suffix.size());
  return pid_of(name.substr(name.rfind('-') + 1));
}

/// Removes files of one directory.
class Remover {
 public:
  explicit Remover(const LeftFiles& left, const std::string& path)
      : Remover(left, path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  /// Takes the descriptor.
  Remover(const LeftFiles& left, std::string path, int directory)
      : left_(left), path_(std::move(path)), directory_(directory) {}

  /// A file that was copied or refused. `user`: a living process that uses it, or 0.
  void remove_known(const KeptFile& file, pid_t user) {
    const std::string name = file.source.substr(file.source.rfind('/') + 1);
    const auto named = file.is_dump ? dump_pid_in(name) : kMapName.pid_in(name);
    struct stat status {};
    if (!look_at(directory_.get(), name, status) || status.st_dev != file.device ||
        status.st_ino != file.inode || !is_of_recording(status, left_.began_ns)) {
      return;
    }
    if (named && is_file_of(static_cast<pid_t>(*named), file.pid, status)) {
      remove(name, status, file.pid, user);
    }
  }
  /// Files that a runtime leaves.
  void remove_left(const StartedNaming& started, std::span<const ProcessInfo> processes) {
    for (const std::string& name : names()) {
      const std::optional<pid_t> named = pid_of_left_file(name, started);
      struct stat status {};
      if (!named || !look_at(directory_.get(), name, status) ||
          !is_of_recording(status, left_.began_ns)) {
        continue;
      }
      const auto writer = std::ranges::find_if(processes, [&](const ProcessInfo& process) {
        return is_file_of(*named, process.pid, status);
      });
      if (writer == processes.end()) continue;
      remove(name, status, writer->pid, process_lives(writer->pid) ? writer->pid : 0);
    }
  }
  RemovedFiles removed;

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    visit_names(directory_.get(), ".", [&names](const char* name) {
      names.emplace_back(name);
      return true;
    });
    return names;
  }
  bool is_file_of(pid_t named, pid_t pid, const struct stat& status) const {
    const bool is_named = left_.places == nullptr ? named == pid
                                                  : left_.places->is_file_of(
                                                        named, pid, {status.st_dev, status.st_ino});
    return is_named && (left_.users == nullptr ? status.st_uid == ::geteuid()
                                               : left_.users->may_remove(pid, status.st_uid));
  }
  /// With the rights of the process: between two looks, its user may put another file there.
  void remove(const std::string& name, const struct stat& status, pid_t pid, pid_t user) {
    std::string path = path_ + "/" + name;
    if (user != 0) {
      removed.in_use.push_back({std::move(path), user, status.st_dev, status.st_ino});
      return;
    }
    const ProcessRights rights =
        left_.users == nullptr ? ProcessRights() : left_.users->rights(pid);
    const Result<void> done = rights.with([&]() -> Result<void> {
      if (::unlinkat(directory_.get(), name.c_str(), 0) == 0) return {};
      return Failure(system_error("cannot remove", path, errno));
    });
    if (done) removed.paths.push_back(std::move(path));
  }

  const LeftFiles& left_;
  std::string path_;
  Descriptor directory_;
};

bool is_in(const std::string& file, const std::string& directory) {
  return file.size() > directory.size() && file.starts_with(directory) &&
         file.rfind('/') == directory.size();
}

/// A living process that wrote the file, or 0: several may have written a refused one.
pid_t user_of(const KeptFile& file, std::span<const KeptFile> files) {
  const auto is_user = [&file](const KeptFile& one) {
    return one.device == file.device && one.inode == file.inode && process_lives(one.pid);
  };
  const auto found = std::ranges::find_if(files, is_user);
  return found == files.end() ? 0 : found->pid;
}

/// A directory may be searched twice, by two paths.
void add_to(RemovedFiles& all, RemovedFiles some) {
  std::ranges::move(some.paths, std::back_inserter(all.paths));
  for (RemovedFiles::InUse& one : some.in_use) {
    const auto is_same = [&one](const RemovedFiles::InUse& other) {
      return other.device == one.device && other.inode == one.inode;
    };
    if (std::ranges::none_of(all.in_use, is_same)) all.in_use.push_back(std::move(one));
  }
}

}  // namespace

std::vector<ProcessInfo> processes_of(const Recording& recording) {
  ProcessList list;
  Diagnostics ignored(1);  // reported by the pass that makes the stacks
  Recording::Reader reader(recording);
  for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
    for (const RecordView& record : records) pass_process_event(record, list);
  }
  std::vector<ProcessInfo> processes;
  for (auto& [pid, process] : list.by_pid) {
    if (pid > 0) processes.push_back(std::move(process));
  }
  return processes;
}

void NameKeeper::add(pid_t pid, const Input& input, bool is_dump) {
  const FileFacts& facts = input.facts();
  const auto is_same = [&](const KeptFile& one) {
    return one.device == facts.device && one.inode == facts.inode;
  };
  const std::pair key{facts.device, facts.inode};
  if (std::ranges::any_of(files_, is_same) || failed_.contains(key)) return;
  if (places_ != nullptr && places_->is_shared(pid, input) && !places_->wrote(pid, key)) {
    const auto is_lost = [&](const MissingFile& file) {
      return file.pid == pid && file.source == input.name();
    };
    if (std::ranges::any_of(missing_, is_lost)) return;
    return lose({&pid, 1}, input.name(),
                "process " + std::to_string(pid) + " was not seen to write it alone, and has " +
                    "the pid in its name only in a pid namespace" + std::string(kOwnTmp));
  }
  KeptFile file{.name = name_of_copy(pid, input.name(), is_dump),
                .source = input.name(),
                .pid = pid,
                .is_dump = is_dump,
                .size = input.text().size(),
                .device = facts.device,
                .inode = facts.inode};
  const Result<void> written = directory_.write(file.name, input.text());
  if (!written) {
    failures_.push_back(written.error());
    missing_.push_back({file.source, pid, written.error().message()});
    failed_.insert(key);
    return;
  }
  files_.push_back(std::move(file));
}

void NameKeeper::refuse(std::span<const pid_t> writers, const Input& file, const std::string& why) {
  for (const pid_t pid : writers) {
    refused_.push_back({.name = {},
                        .source = file.name(),
                        .pid = pid,
                        .is_dump = is_dump_path(file.name()),
                        .device = file.facts().device,
                        .inode = file.facts().inode});
  }
  lose(writers, file.name(), why);
}

void NameKeeper::lose(std::span<const pid_t> writers, const std::string& file,
                      const std::string& why) {
  for (const pid_t pid : writers) missing_.push_back({file, pid, why});
  failures_.push_back(Error::cannot("use", file, Reason::unsuitable, why));
}

std::size_t NameKeeper::add_logs(const std::string& written, std::span<const ProcessInfo> processes,
                                 const RecordedUsers& users) {
  constexpr std::string_view kPid = "%d";
  std::size_t count = 0;
  for (const RuntimeInfo* const row : all_runtimes()) {
    const std::string_view name = row->maps.log;
    const std::size_t at = name.find(kPid);
    if (name.empty() || at == std::string_view::npos) continue;
    for (const ProcessInfo& process : processes) {
      const std::string source = written + "/" + std::string(name.substr(0, at)) +
                                 std::to_string(process.pid) +
                                 std::string(name.substr(at + kPid.size()));
      const Result<MapText> map = map_of_log(source, process.pid, users);
      if (!map && map.error().code == Errc::not_found) continue;
      KeptFile file{.name = kMapName.of(process.pid), .source = source, .pid = process.pid};
      const Result<void> copied = map ? directory_.write(file.name, map->text) : failure(map);
      if (!copied) {
        failures_.push_back(copied.error());
        missing_.push_back({source, process.pid, copied.error().message()});
        continue;
      }
      file.size = map->text.size();
      files_.push_back(std::move(file));
      ++count;
    }
  }
  return count;
}

RemovedFiles remove_left_files(const LeftFiles& left, std::span<const KeptFile> files,
                               std::span<const ProcessInfo> processes) {
  const bool was_named = !left.named.empty();
  RemovedFiles removed;
  Remover in_tmp(left, left.tmp);
  for (const KeptFile& file : files) {
    if (!is_in(file.source, left.tmp)) continue;
    const bool was_asked = std::ranges::find(left.asked, file.pid) != left.asked.end();
    if (was_asked || was_named) in_tmp.remove_known(file, was_asked ? 0 : user_of(file, files));
  }
  add_to(removed, std::move(in_tmp.removed));
  const auto remove_from = [&](Remover remover) {
    // V8 writes jitdumps to its working directory.
    for (const KeptFile& file : files) {
      if (file.is_dump && was_named) remover.remove_known(file, user_of(file, files));
    }
    for (const Runtime runtime : left.named) {
      remover.remove_left(runtime_info(runtime).started, processes);
    }
    add_to(removed, std::move(remover.removed));
  };
  if (left.places != nullptr) {
    for (const RecordedPlaces::Place& place : left.places->places()) {
      constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
      remove_from(Remover(left, place.path, ::openat(place.directory, ".", kFlags)));
    }
  }
  remove_from(Remover(left, left.working_directory));
  return removed;
}

}  // namespace perfmap
