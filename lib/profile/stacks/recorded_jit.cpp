// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

/// When recorded processes began and ended, on the clock of file times (CLOCK_REALTIME).
///
/// Recordings made with -k have a reference: one moment on both clocks. For others, the time of the
/// last record is estimated by the modification time of the recording, which is slightly later; if
/// the recording was copied, it may be much later.
///
/// A second pass over the recording is made, but only when it is first needed.
class RecordedLives {
 public:
  /// Borrows the recording.
  explicit RecordedLives(const Recording& recording) : recording_(&recording) {}

  /// Nanoseconds since 1970.
  struct Life {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// Whether the host name of the recording is that of this machine, or is not recorded.
  bool is_of_this_machine() const;
  /// Whether times are exact, not estimated.
  bool is_exact() const noexcept;
  /// The first time at which the process is known to exist: its fork or exec, or the begin of the
  /// recording. Nothing if the recording's times cannot be compared with file times.
  std::optional<std::int64_t> first_seen(const ProcessInfo& process);
  /// When its program began, if that was recorded and times are exact.
  std::optional<std::int64_t> began_at(const ProcessInfo& process);
  /// When it ended, if that was recorded and times are exact.
  std::optional<std::int64_t> ended_at(const ProcessInfo& process);
  /// False if the header of the recording has a last sample after that time.
  bool may_be_after_recording(std::int64_t file_time);
  /// Whether a process with that start time can be the recorded one: not later than first seen,
  /// and, if its fork was recorded, not before the fork. `slack` allows for coarse clocks. True if
  /// the times cannot be compared.
  bool may_have_begun(const ProcessInfo& process, std::int64_t start_ns, std::int64_t slack);
  /// Up to its exit, or to the recording's end.
  std::optional<Life> life_of(const ProcessInfo& process);
  /// What the recording's events say about the process that had `pid` at `time`.
  ProcessInfo find(pid_t pid, std::uint64_t time);

 private:
  struct Span {
    std::uint64_t begin = 0;  ///< of the process; `process` is its latest program
    ProcessInfo process;
    bool has_ended = false;
  };
  struct Events;

  const Events& events();
  std::optional<std::int64_t> wall_ns(std::uint64_t time);
  std::uint64_t begin_time();
  const Span* span_of(pid_t pid, std::uint64_t time);

  const Recording* recording_;
  std::shared_ptr<const Events> events_;
};

/// A file that may belong to a recorded process, and the facts to decide that.
struct CandidateFile {
  Input input;
  bool is_dump = false;
  std::uint64_t links = 0;
  std::int64_t changed_ns = 0;  ///< st_ctim: only the kernel sets it

  uid_t owner() const noexcept { return input.facts().uid; }
};

/// Greater times do not come from a real clock.
constexpr std::uint64_t kLatest = UINT64_MAX / 4;

/// a + (b - c); nothing on overflow.
std::optional<std::int64_t> shifted(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  if (a == 0 || a > kLatest || b > kLatest || c > kLatest) return std::nullopt;
  const auto sum =
      static_cast<std::int64_t>(a) + static_cast<std::int64_t>(b) - static_cast<std::int64_t>(c);
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

struct RecordedLives::Events {
  std::unordered_map<pid_t, std::vector<Span>> spans;  // per pid, in time order
  std::uint64_t first_time = 0;                        // of the first record with a time
  std::uint64_t last_time = 0;

  explicit Events(const Recording& recording) {
    Diagnostics ignored(1);  // reported by the pass that makes the stacks
    Recording::Reader reader(recording);
    for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
      for (const RecordView& record : records) {
        if (first_time == 0) first_time = record.time;
        last_time = std::max(last_time, record.time);
        pass_process_event(record, *this);
      }
    }
  }

  Span& begin(pid_t pid, std::uint64_t time, ProcessBegin how) {
    Span span;
    span.begin = time;
    span.process.pid = pid;
    span.process.began = how;
    span.process.since = time;
    span.process.until = time;
    spans[pid].push_back(std::move(span));
    return spans[pid].back();
  }
  Span& living(pid_t pid, std::uint64_t time) {
    auto& all = spans[pid];
    if (all.empty() || all.back().has_ended) return begin(pid, time, ProcessBegin::seen);
    return all.back();
  }

  void on_mmap(const MmapEvent& event) { living(event.pid, event.time); }
  void on_comm(const CommEvent& event) { living(event.pid, event.time).process.take(event); }
  void on_fork(const ForkEvent& event) {
    if (event.pid == event.parent) return;  // a thread
    const std::string comm = living(event.parent, event.time).process.comm;
    const ProcessBegin how = event.lived_before ? ProcessBegin::seen : ProcessBegin::forked;
    begin(event.pid, event.time, how).process.comm = comm;
  }
  /// Other threads may end after the main thread.
  void on_exit(const ExitEvent& event) {
    const auto found = spans.find(event.pid);
    if (found == spans.end()) return;
    Span& span = found->second.back();
    span.has_ended = span.has_ended || event.tid == event.pid;
    span.process.until = std::max(span.process.until, event.time);
  }
};

const RecordedLives::Events& RecordedLives::events() {
  if (events_ == nullptr) events_ = std::make_shared<const Events>(*recording_);
  return *events_;
}

bool RecordedLives::is_of_this_machine() const {
  struct utsname here {};
  const std::string& hostname = recording_->facts().hostname;
  return hostname.empty() || ::uname(&here) != 0 || hostname == here.nodename;
}

bool RecordedLives::is_exact() const noexcept { return recording_->facts().wall_ns != 0; }

// Synthesized events for processes that existed before the recording have no time of their own.
std::optional<std::int64_t> RecordedLives::began_at(const ProcessInfo& process) {
  const bool was_seen =
      process.began == ProcessBegin::forked || process.began == ProcessBegin::executed;
  if (!is_exact() || !was_seen || process.since < recording_->facts().clock_ns) return {};
  return wall_ns(process.since);
}

bool RecordedLives::may_have_begun(const ProcessInfo& process, std::int64_t start_ns,
                                   std::int64_t slack) {
  const auto seen = first_seen(process);
  if (seen && start_ns > *seen + slack) return false;
  const bool is_fork = process.began == ProcessBegin::forked;
  const auto fork = is_fork ? began_at(process) : std::nullopt;
  return !fork || start_ns >= *fork - slack;
}

std::optional<std::int64_t> RecordedLives::wall_ns(std::uint64_t time) {
  const RecordingFacts& facts = recording_->facts();
  if (is_exact()) return shifted(facts.wall_ns, time, facts.clock_ns);
  const FileFacts& file = recording_->input().facts();
  if (!file.is_regular || file.mtime_ns <= 0) return std::nullopt;
  const std::uint64_t last = facts.last_sample != 0 ? facts.last_sample : events().last_time;
  // The file was written after the last record.
  return shifted(static_cast<std::uint64_t>(file.mtime_ns), std::min(time, last), last);
}

std::uint64_t RecordedLives::begin_time() {
  const RecordingFacts& facts = recording_->facts();
  if (is_exact()) return facts.clock_ns;
  return facts.first_sample != 0 ? facts.first_sample : events().first_time;
}

std::optional<std::int64_t> RecordedLives::first_seen(const ProcessInfo& process) {
  const bool is_before = process.since == 0 || (is_exact() && process.since < begin_time());
  return wall_ns(is_before ? begin_time() : process.since);
}

const RecordedLives::Span* RecordedLives::span_of(pid_t pid, std::uint64_t time) {
  const auto found = events().spans.find(pid);
  if (found == events().spans.end()) return nullptr;
  const std::vector<Span>& all = found->second;
  const auto later = std::find_if(all.begin() + 1, all.end(),
                                  [time](const Span& one) { return one.begin > time; });
  return &*(later - 1);
}

std::optional<RecordedLives::Life> RecordedLives::life_of(const ProcessInfo& process) {
  const Span* const span = span_of(process.pid, process.since);
  const bool has_ended = span != nullptr && span->has_ended;
  const auto begin = first_seen(process);
  const auto end = wall_ns(has_ended ? span->process.until : events().last_time);
  if (!begin || !end) return std::nullopt;
  return Life{*begin, *end};
}

std::optional<std::int64_t> RecordedLives::ended_at(const ProcessInfo& process) {
  const Span* const span = is_exact() ? span_of(process.pid, process.since) : nullptr;
  if (span == nullptr || !span->has_ended) return std::nullopt;
  return wall_ns(span->process.until);
}

bool RecordedLives::may_be_after_recording(std::int64_t file_time) {
  const std::uint64_t last = recording_->facts().last_sample;
  const auto end = is_exact() && last != 0 ? wall_ns(last) : std::nullopt;
  return !end || file_time > *end;
}

ProcessInfo RecordedLives::find(pid_t pid, std::uint64_t time) {
  if (const Span* const span = span_of(pid, time)) return span->process;
  ProcessInfo unknown;
  unknown.pid = pid;
  unknown.since = time;
  return unknown;
}

const OpenPolicy kFoundFile{
    .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};

bool has_name(const ProcSource& source, const std::string& comm) {
  const auto status = source.status();
  return status && *status && (*status)->comm == comm;
}

/// Opens a path that was found, not typed: no link as last component, regular files only, bounded
/// size. Any owner.
Result<CandidateFile> open_candidate(const std::string& path, bool is_dump) {
  // Opened through its descriptor, so that the file checked is the file read.
  const Descriptor found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return Failure(system_error("cannot open", path, errno));
  const Result<Descriptor> fd = open_found(found, path);
  if (!fd) return failure(fd);
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return Failure(system_error("cannot open", path, errno));
  Result<Input> input = Input::from_descriptor(fd->get(), path, kFoundFile);
  if (!input) return failure(input);
  constexpr std::int64_t kSecond = 1'000'000'000;
  return CandidateFile{*std::move(input), is_dump, status.st_nlink,
                       status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec};
}

/// The recorded process, if it is still alive on this machine. Another process may have its pid by
/// now: see RecordedLives. If times are not exact, its name must match, too. If `lives` is null,
/// nothing is known about times.
std::optional<ProcSource> find_living(const ProcessInfo& process, RecordedLives* lives,
                                      const Roots& roots) {
  if (lives == nullptr || !lives->is_of_this_machine()) return std::nullopt;
  auto source = ProcSource::open(process.pid, roots);
  if (!source || !*source) return std::nullopt;
  const std::int64_t start = start_time_ns(**source, roots.proc);
  if (!lives->may_have_begun(process, start, kTimeSlack)) return std::nullopt;
  if (!lives->is_exact() && !has_name(**source, process.comm)) return std::nullopt;
  return *std::move(source);
}

/// Why a file of another user is not accepted for a process that has ended; empty if it is.
std::string objection_to(const CandidateFile& file, const ProcessInfo& process,
                         RecordedLives* lives) {
  if (file.links != 1) {
    return hard_links(file.links) + ", and another user may have made one of them";
  }
  const auto life = lives != nullptr ? lives->life_of(process) : std::nullopt;
  if (!life) return "the lifetime of the process is unknown";
  const std::int64_t written = file.input.facts().mtime_ns;
  if (written + kTimeSlack < life->begin) {
    const bool is_begin = process.began != ProcessBegin::seen;
    return std::string("it was last written before the ") +
           (is_begin ? "process started"
                     : "recording, which does not say when the process started");
  }
  if (std::max(written, file.changed_ns) - kTimeSlack > life->end) {
    return "it was changed after the process was last seen";
  }
  if (!file.is_dump) return {};
  const auto header = Jitdump(file.input).header();
  if (!header) return "it is not a jitdump";
  if (header->pid == static_cast<std::uint32_t>(process.pid)) return {};
  return "its header names process " + std::to_string(header->pid);
}

/// The perf map and the jitdumps of one recorded process; see find_recorded_jit().
class RecordedFiles {
 public:
  RecordedFiles(const RecordedJitOptions& options, RecordedLives* lives, const ProcessInfo& process,
                RecordedRefusals& refused)
      : options_(options), lives_(lives), process_(process), refused_(refused) {}

  /// `paths` are those of the dumps that it had mapped.
  void find(std::vector<std::string> paths);

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
  RecordedLives* lives_;  // null: nothing is known about processes
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

/// If the process sees the file under the same name as we do, that name is used.
void use_short_name(Input& input, const std::string& path) {
  struct stat status {};
  const FileFacts& facts = input.facts();
  if (::lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == facts.device && status.st_ino == facts.inode) input.rename(path);
}

void RecordedFiles::find(std::vector<std::string> paths) {
  if (paths.size() > kMaxProcessDumps) {
    paths.resize(kMaxProcessDumps);
    refuse(Error::too_large("process " + std::to_string(process_.pid) + " had mapped more than " +
                            std::to_string(kMaxProcessDumps) +
                            " jitdumps: only the first ones are read"));
  }
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

/// Reports each file once, although it is searched again when the process maps another dump.
void RecordedFiles::refuse_foreign(const Input& input, std::string why) {
  const auto is_same = [&](const ForeignFile& one) {
    return one.pid == process_.pid && one.path == input.name();
  };
  if (std::any_of(refused_.foreign.begin(), refused_.foreign.end(), is_same)) return;
  refused_.foreign.push_back(
      {process_.pid, process_.comm, input.name(), input.facts().uid, std::move(why)});
}

/// A missing file is not an error: it is optional.
void RecordedFiles::refuse(Error error) {
  if (error.code == Errc::not_found) return;
  const auto is_same = [&](const Error& one) { return one.message() == error.message(); };
  if (std::any_of(refused_.others.begin(), refused_.others.end(), is_same)) return;
  refused_.others.push_back(std::move(error));
}

void RecordedFiles::refuse_stale(const Input& input) {
  refuse(Error::cannot("use", input.name(), Reason::older_than_process));
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
  const auto open = [&](const std::string& name) {
    const std::string& shown = options_.shown_directory;
    Result<Input> input = Input::open(options_.directory + "/" + name, found_file());
    if (input && !shown.empty()) input->rename(shown + "/" + name);
    return input;
  };
  take_map(open(kMapName.of(process_.pid)));
  for (const std::string& path : paths) take_dump(open(std::string(base_name(path))));
  if (paths.empty()) take_dump(open(kDumpName.of(process_.pid)));
}

/// Unpacked files belong to the user who unpacked them; the manifest has their original owner.
void RecordedFiles::find_in_snapshot() {
  const Snapshot& snapshot = *options_.snapshot;
  const auto process = ProcSource::open(process_.pid, snapshot.roots());
  if (!process) return refuse(process.error());
  if (!*process) return;
  const std::int64_t start = start_time_ns(**process, snapshot.roots().proc);
  if (lives_ != nullptr && !lives_->may_have_begun(process_, start, kTimeSlack)) {
    return refuse(Error::cannot("use", snapshot.directory(), Reason::other_process,
                                std::to_string(process_.pid)));
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

/// False if the process has ended, or is not the recorded one.
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
  // Some files were found by pid alone: if the process is still alive, it had the pid all the time.
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
  refuse_foreign(*foreign, "the process is alive and runs as user " + std::to_string(user));
}

void RecordedFiles::take_living_dump(const ProcSource& process, uid_t user,
                                     const std::string& path) {
  OpenPolicy policy = found_file();
  policy.follow_link = false;
  auto dump = process.open_below_root(path, policy);
  const bool has_no_root = !dump && dump.error().code == Errc::io &&
                           (dump.error().sys_errno == EACCES || dump.error().sys_errno == EPERM);
  // Another user's root may be unreadable; it may equal ours.
  if (has_no_root) dump = process.open_on_host(path, policy);
  if (!dump) return refuse(std::move(dump.error()));
  if (!*dump) return;
  Input& input = **dump;
  use_short_name(input, path);
  if (is_older_than(process, options_.roots.proc, input.facts())) return refuse_stale(input);
  if (is_trusted(input.facts().uid) || input.facts().uid == user) return take_dump(input);
  refuse_foreign(input, "the process is alive and runs as user " + std::to_string(user));
}

/// For a producer that does not map its dump.
void RecordedFiles::take_unmapped_dumps() {
  ProcessDumps found = find_process_dumps(process_.pid, options_.roots, options_.any_owner);
  for (Input& dump : found.dumps) dumps.emplace_back(std::move(dump));
  for (Error& error : found.refused) refuse(std::move(error));
}

void RecordedFiles::take_below_symfs(const std::vector<std::string>& paths) {
  const int root = ::open(options_.symfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return refuse(system_error("cannot open", options_.symfs, errno));
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
  add(options_.roots.tmp + "/" + kMapName.of(process_.pid), false);
  if (!options_.symfs.empty()) {
    take_below_symfs(paths);
  } else {
    for (const std::string& path : paths) add(path, true);
  }
  judge(std::move(files));
}

/// Another process may have had the pid since, and written its own file. Few files are newer than
/// the recording, so the end of the process, which needs a second pass, is rarely asked for.
bool RecordedFiles::is_newer_than_process(const CandidateFile& file) const {
  const std::int64_t written = file.input.facts().mtime_ns - kTimeSlack;
  if (file.is_dump || options_.any_owner || lives_ == nullptr) return false;
  if (!lives_->may_be_after_recording(written)) return false;
  const auto ended = lives_->ended_at(process_);
  return ended && written > *ended;
}

/// A file that fails a check must not affect the others: any user could plant one.
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
    const bool is_of_stranger = !is_trusted(file.owner()) && options_.ran_as &&
                                !options_.ran_as(process_.pid, file.owner());
    if (why.empty() && is_of_stranger) why = "the process was not seen to run as that user";
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

/// What all processes of a recording share.
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
    if (options.on_found) {
      for (const Map& map : files.maps) options.on_found(process.pid, map.input(), false);
      for (const Jitdump& dump : files.dumps) options.on_found(process.pid, dump.input(), true);
    }
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
  return [options = std::move(options), lives = std::make_shared<RecordedLives>(recording),
          &refused](pid_t pid, std::uint64_t time,
                    const std::string& path) -> Result<RecordedDump> {
    RecordedRefusals own;
    const ProcessInfo process = lives->find(pid, time);
    RecordedFiles files(options, lives.get(), process, own);
    files.find({path});
    const std::string_view name = base_name(path);
    const auto found =
        std::find_if(files.dumps.begin(), files.dumps.end(),
                     [&](const Jitdump& dump) { return base_name(dump.input().name()) == name; });
    if (found != files.dumps.end()) return RecordedDump{std::move(*found), files.doubts};
    for (ForeignFile& file : own.foreign) {
      if (base_name(file.path) != name) continue;
      Error error = Error::refused(to_string(file));
      error.reason = Reason::foreign_owner;
      error.path = file.path;
      refused.foreign.push_back(std::move(file));
      return Failure(std::move(error));
    }
    for (Error& error : own.others) {
      if (base_name(error.path) == name) return Failure(std::move(error));
    }
    return Failure(system_error("cannot open", path, ENOENT));
  };
}

}  // namespace perfmap
