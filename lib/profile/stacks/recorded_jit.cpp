#include "perfmap/recorded_jit.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfmap/living_parents.hpp"
#include "process/proc_text.hpp"
#include "stacks/recorded_life.hpp"

namespace perfmap {

namespace {

/// The perf map and the jitdumps of one recorded process; see find_recorded_jit().
class RecordedFiles {
 public:
  RecordedFiles(const RecordedJitOptions& options, RecordedLives* lives, const ProcessInfo& process,
                RecordedRefusals& refused)
      : options_(options), lives_(lives), process_(process), refused_(refused) {}

  /// `paths` are those of the dumps that it had mapped.
  void find(const std::vector<std::string>& paths);

  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
  Doubts doubts;

 private:
  void find_in_directory(const std::vector<std::string>& paths);
  void find_in_snapshot();
  bool find_of_living(const std::vector<std::string>& paths);
  void find_of_dead(const std::vector<std::string>& paths);
  void take_living_map(const ProcSource& process, uid_t user);
  void take_living_dump(const ProcSource& process, uid_t user, const std::string& path);
  void take_unmapped_dumps();
  void take_below_symfs(const std::vector<std::string>& paths);
  void judge(std::vector<CandidateFile> files);
  bool is_newer_than_process(const CandidateFile& file) const;

  bool is_trusted(uid_t owner) const noexcept;
  void refuse_foreign(const Input& input, std::string why);
  void refuse(Error error);
  void refuse_stale(const Input& input);
  void take_map(Result<Input> input);
  void take_dump(Result<Input> input);
  void take(CandidateFile file);

  const RecordedJitOptions& options_;
  RecordedLives* lives_;  // null: nothing is known of processes
  const ProcessInfo& process_;
  RecordedRefusals& refused_;
};

OpenPolicy found_file() {
  OpenPolicy policy;
  policy.regular_only = true;
  policy.bounded = true;
  policy.keep_descriptor = false;
  return policy;
}

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string map_name(pid_t pid) { return "/perf-" + std::to_string(pid) + ".map"; }

/// Where the file has the same name for us as for the process, it is called by that.
void use_short_name(Input& input, const std::string& path) {
  struct stat status {};
  const FileFacts& facts = input.facts();
  if (::lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == facts.device && status.st_ino == facts.inode) input.rename(path);
}

void RecordedFiles::find(const std::vector<std::string>& paths) {
  if (options_.snapshot != nullptr) {
    find_in_snapshot();
  } else if (!options_.directory.empty()) {
    find_in_directory(paths);
  } else if (!find_of_living(paths)) {
    find_of_dead(paths);
  }
}

bool RecordedFiles::is_trusted(uid_t owner) const noexcept {
  return options_.any_owner || owner == 0 || owner == ::geteuid();
}

/// Once each, though they are looked for again when the process maps another dump.
void RecordedFiles::refuse_foreign(const Input& input, std::string why) {
  const auto is_same = [&](const ForeignFile& one) {
    return one.pid == process_.pid && one.path == input.name();
  };
  if (std::any_of(refused_.foreign.begin(), refused_.foreign.end(), is_same)) return;
  refused_.foreign.push_back(
      {process_.pid, process_.comm, input.name(), input.facts().uid, std::move(why)});
}

/// What is not there is not missed: nobody promised it.
void RecordedFiles::refuse(Error error) {
  if (error.code == Errc::not_found) return;
  const auto is_same = [&](const Error& one) { return one.message == error.message; };
  if (std::any_of(refused_.others.begin(), refused_.others.end(), is_same)) return;
  refused_.others.push_back(std::move(error));
}

void RecordedFiles::refuse_stale(const Input& input) {
  refuse({Errc::refused, "cannot use " + input.name() + ": it is older than its process", 0, {}});
}

void RecordedFiles::take_map(Result<Input> input) {
  if (!input) return refuse(std::move(input.error()));
  maps.emplace_back(*std::move(input));
}

void RecordedFiles::take_dump(Result<Input> input) {
  if (!input) return refuse(std::move(input.error()));
  dumps.emplace_back(*std::move(input));
}

void RecordedFiles::take(CandidateFile file) {
  if (file.is_dump) {
    dumps.emplace_back(std::move(file.input));
  } else {
    maps.emplace_back(std::move(file.input));
  }
}

void RecordedFiles::find_in_directory(const std::vector<std::string>& paths) {
  const std::string number = std::to_string(process_.pid);
  take_map(Input::open(options_.directory + map_name(process_.pid), found_file()));
  for (const std::string& path : paths) {
    take_dump(Input::open(options_.directory + "/" + base_of(path), found_file()));
  }
  if (!paths.empty()) return;
  take_dump(Input::open(options_.directory + "/jit-" + number + ".dump", found_file()));
}

/// Whoever unpacked it owns its files: what they belonged to is in its manifest.
void RecordedFiles::find_in_snapshot() {
  const Snapshot& snapshot = *options_.snapshot;
  const auto process = ProcSource::open(process_.pid, snapshot.roots());
  if (!process) return refuse(process.error());
  if (!*process) return;
  const std::int64_t start = start_time_ns(**process, snapshot.roots().proc);
  if (lives_ != nullptr && !lives_->may_have_begun(process_, start, kTimeSlack)) {
    return refuse({Errc::refused,
                   "cannot use " + snapshot.directory() + ": process " +
                       std::to_string(process_.pid) +
                       " of the recording is another one of the same pid",
                   0,
                   {}});
  }
  take_map(find_process_map(process_.pid, snapshot.roots(), true));
  ProcessDumps found = find_process_dumps(process_.pid, snapshot.roots(), true);
  for (Input& dump : found.dumps) dumps.emplace_back(std::move(dump));
  for (Error& error : found.refused) refuse(std::move(error));
  const SnapshotManifest& manifest = snapshot.manifest();
  const bool has_foreign =
      std::any_of(manifest.files.begin(), manifest.files.end(), [&](const SnapshotFile& file) {
        return file.kind != SnapshotFile::Kind::vdso && file.owner != 0 &&
               file.owner != manifest.uid;
      });
  if (has_foreign) doubts.add(Doubt::guessed_owner);
}

/// False where the process is gone, or not the one that was recorded.
bool RecordedFiles::find_of_living(const std::vector<std::string>& paths) {
  const auto process = find_living(process_, lives_, options_.roots);
  if (!process) return false;
  const auto status = process->status();
  if (!status || !*status) return false;
  const RecordedRefusals before = refused_;
  take_living_map(*process, (*status)->uid);
  if (!options_.symfs.empty()) {
    take_below_symfs(paths);
  } else {
    for (const std::string& path : paths) take_living_dump(*process, (*status)->uid, path);
    if (paths.empty()) take_unmapped_dumps();
  }
  // Some of it was found by the pid alone: that was the process's all the time if it is now.
  if (process->is_alive()) return true;
  maps.clear();
  dumps.clear();
  refused_ = before;
  return false;
}

void RecordedFiles::take_living_map(const ProcSource& process, uid_t user) {
  Result<Input> map = find_process_map(process_.pid, options_.roots, options_.any_owner);
  if (map && is_older_than(process, options_.roots.proc, map->facts())) return refuse_stale(*map);
  if (map) return take_map(std::move(map));
  const Result<Input> foreign = find_process_map(process_.pid, options_.roots, true);
  if (!foreign) return refuse(std::move(map.error()));
  refuse_foreign(*foreign, "the process lives, and is of user " + std::to_string(user));
}

void RecordedFiles::take_living_dump(const ProcSource& process, uid_t user,
                                     const std::string& path) {
  OpenPolicy policy = found_file();
  policy.follow_link = false;
  auto dump = process.open_below_root(path, policy);
  if (!dump && (dump.error().sys_errno == EACCES || dump.error().sys_errno == EPERM)) {
    // Another user's root may not be looked into; it may be ours.
    Result<CandidateFile> file = open_candidate(path, true);
    if (!file) return refuse(std::move(file.error()));
    dump = std::optional(std::move(file->input));
  }
  if (!dump) return refuse(std::move(dump.error()));
  if (!*dump) return;
  Input& input = **dump;
  use_short_name(input, path);
  if (is_older_than(process, options_.roots.proc, input.facts())) return refuse_stale(input);
  if (is_trusted(input.facts().uid) || input.facts().uid == user) return take_dump(input);
  refuse_foreign(input, "the process lives, and is of user " + std::to_string(user));
}

/// Of a producer that does not map its dump for perf.
void RecordedFiles::take_unmapped_dumps() {
  ProcessDumps found = find_process_dumps(process_.pid, options_.roots, options_.any_owner);
  for (Input& dump : found.dumps) dumps.emplace_back(std::move(dump));
  for (Error& error : found.refused) refuse(std::move(error));
}

void RecordedFiles::take_below_symfs(const std::vector<std::string>& paths) {
  const int root = ::open(options_.symfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return refuse(system_error("cannot open " + options_.symfs, errno));
  for (const std::string& path : paths) {
    take_dump(Input::open_below(root, path, options_.symfs + path, found_file()));
  }
  ::close(root);
}

void RecordedFiles::find_of_dead(const std::vector<std::string>& paths) {
  std::vector<CandidateFile> files;
  const auto add = [&](const std::string& path, bool is_dump) {
    Result<CandidateFile> file = open_candidate(path, is_dump);
    if (file) files.push_back(*std::move(file));
    if (!file) refuse(std::move(file.error()));
  };
  add(options_.roots.tmp + map_name(process_.pid), false);
  if (!options_.symfs.empty()) {
    take_below_symfs(paths);
  } else {
    for (const std::string& path : paths) add(path, true);
  }
  judge(std::move(files));
}

/// Another process may have had the pid since, and have written its own. Few files are newer than
/// the recording, so that few ask when the process ended: that takes a second pass.
bool RecordedFiles::is_newer_than_process(const CandidateFile& file) const {
  const std::int64_t written = file.input.facts().mtime_ns - kTimeSlack;
  if (file.is_dump || options_.any_owner || lives_ == nullptr) return false;
  if (!lives_->may_be_after_recording(written)) return false;
  const auto ended = lives_->ended_at(process_);
  return ended && written > *ended;
}

/// A file that fails a test must not spoil the others: anybody could plant one.
void RecordedFiles::judge(std::vector<CandidateFile> files) {
  const auto began = lives_ != nullptr ? lives_->began_at(process_) : std::nullopt;
  std::vector<CandidateFile> left;
  for (CandidateFile& file : files) {
    const bool is_stale =
        began && !file.is_dump && file.input.facts().mtime_ns + kTimeSlack < *began;
    if (is_stale) {
      refuse_stale(file.input);
      continue;
    }
    std::string why =
        is_trusted(file.owner()) ? std::string() : objection_to(file, process_, lives_);
    if (why.empty()) left.push_back(std::move(file));
    if (!why.empty()) refuse_foreign(file.input, std::move(why));
  }
  const bool has_one_owner = std::all_of(left.begin(), left.end(), [&](const CandidateFile& file) {
    return file.owner() == left.front().owner();
  });
  for (CandidateFile& file : left) {
    if (is_trusted(file.owner())) {
      if (is_newer_than_process(file)) doubts.add(Doubt::guessed_owner);
      take(std::move(file));
    } else if (has_one_owner) {
      doubts.add(Doubt::guessed_owner);
      take(std::move(file));
    } else {
      refuse_foreign(file.input, "other files of the process have another owner");
    }
  }
}

std::optional<ProcSource> find_in_snapshot(const ProcessInfo& process, RecordedLives& lives,
                                           const Roots& roots) {
  auto found = ProcSource::open(process.pid, roots);
  if (!found || !*found) return std::nullopt;
  const std::int64_t start = start_time_ns(**found, roots.proc);
  if (!lives.may_have_begun(process, start, kTimeSlack)) return std::nullopt;
  return *std::move(found);
}

/// What all processes of a recording have in common.
struct Finder {
  RecordedJitOptions options;
  std::shared_ptr<RecordedLives> lives;
  RecordedRefusals& refused;

  std::shared_ptr<JitSources> operator()(const ProcessInfo& process,
                                         const std::vector<std::string>& paths) const {
    if (options.given != nullptr) return options.given;
    RecordedFiles files(options, lives.get(), process, refused);
    files.find(paths);
    if (files.maps.empty() && files.dumps.empty()) return nullptr;
    return std::make_shared<JitSources>(std::move(files.maps), std::move(files.dumps),
                                        options.overlap, files.doubts);
  }
};

}  // namespace

std::string to_string(const ForeignFile& file) {
  return "foreign-owner: " + file.path + " of process " + std::to_string(file.pid) +
         (file.comm.empty() ? "" : " (" + file.comm + ")") + " belongs to user " +
         std::to_string(file.owner) + " and was not used: " + file.why;
}

StackOptions::FindJit find_recorded_jit(const Recording& recording, RecordedJitOptions options,
                                        RecordedRefusals& refused) {
  return Finder{std::move(options), std::make_shared<RecordedLives>(recording), refused};
}

StackOptions::FindJit find_recorded_jit(RecordedJitOptions options, RecordedRefusals& refused) {
  return Finder{std::move(options), nullptr, refused};
}

StackOptions::FindParents find_recorded_parents(const Recording& recording,
                                                RecordedJitOptions options) {
  return [options = std::move(options), lives = std::make_shared<RecordedLives>(recording)](
             const ProcessInfo& process) -> std::optional<std::vector<ProcessInfo>> {
    std::vector<ProcessInfo> parents;
    const bool has_snapshot = options.snapshot != nullptr;
    if (options.given != nullptr || (!has_snapshot && !options.directory.empty())) return parents;
    const Roots& roots = has_snapshot ? options.snapshot->roots() : options.roots;
    const auto found = has_snapshot ? find_in_snapshot(process, *lives, roots)
                                    : find_living(process, lives.get(), roots);
    if (!found) return std::nullopt;
    for (const ProcSource& parent : living_parents(*found, roots)) {
      const auto status = parent.status();
      if (!status || !*status) break;
      ProcessInfo info;
      info.pid = parent.pid();
      info.comm = (*status)->comm;
      info.began = ProcessBegin::imported;
      info.until = ProcessTracker::kNow;
      parents.push_back(std::move(info));
    }
    return parents;
  };
}

std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
open_recorded_dump(const Recording& recording, RecordedJitOptions options,
                   RecordedRefusals& refused) {
  return
      [options = std::move(options), lives = std::make_shared<RecordedLives>(recording), &refused](
          pid_t pid, std::uint64_t time, const std::string& path) -> Result<RecordedDump> {
        RecordedRefusals own;
        const ProcessInfo process = lives->find(pid, time);
        RecordedFiles files(options, lives.get(), process, own);
        files.find({path});
        const std::string name = base_of(path);
        const auto found =
            std::find_if(files.dumps.begin(), files.dumps.end(),
                         [&](const Jitdump& dump) { return base_of(dump.input().name()) == name; });
        if (found != files.dumps.end()) return RecordedDump{std::move(*found), files.doubts};
        for (ForeignFile& file : own.foreign) {
          if (base_of(file.path) != name) continue;
          Error error{Errc::refused, to_string(file), 0, {}};
          refused.foreign.push_back(std::move(file));
          return Failure(std::move(error));
        }
        for (Error& error : own.others) {
          if (error.message.find(name) != std::string::npos) return Failure(std::move(error));
        }
        return Failure(system_error("cannot open " + path, ENOENT));
      };
}

}  // namespace perfmap
