#include "stacks/recorded_life.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "perfmap/jitdump.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

/// Times beyond are not those of a clock that anybody has.
constexpr std::uint64_t kLatest = UINT64_MAX / 4;

/// a + (b - c); nothing where a number makes no sense.
std::optional<std::int64_t> shifted(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  if (a == 0 || a > kLatest || b > kLatest || c > kLatest) return std::nullopt;
  const auto sum =
      static_cast<std::int64_t>(a) + static_cast<std::int64_t>(b) - static_cast<std::int64_t>(c);
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace

struct RecordedLives::Events {
  std::unordered_map<pid_t, std::vector<Span>> spans;  // of each pid, in the order of their times
  std::uint64_t first_time = 0;                        // of a record that has one
  std::uint64_t last_time = 0;

  explicit Events(const Recording& recording) {
    Diagnostics ignored(1);  // whoever makes the stacks reports them
    Recording::Reader reader(recording);
    for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
      for (const RecordView& record : records) take(record);
    }
  }

 private:
  void take(const RecordView& record) {
    if (first_time == 0) first_time = record.time;
    last_time = std::max(last_time, record.time);
    switch (record.type) {
      case RecordType::mmap:
      case RecordType::mmap2:
        if (const auto event = decode_mmap(record)) living(event->pid, event->time);
        break;
      case RecordType::comm:
        if (const auto event = decode_comm(record)) on_comm(*event);
        break;
      case RecordType::fork:
        if (const auto event = decode_fork(record)) on_fork(*event);
        break;
      case RecordType::exit:
        if (const auto event = decode_exit(record)) on_exit(*event);
        break;
      default: break;
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

  void on_comm(const CommEvent& event) {
    ProcessInfo& process = living(event.pid, event.time).process;
    if (event.exec) {
      process.began = ProcessBegin::executed;
      process.since = event.time;
    }
    if (event.pid == event.tid) process.comm = event.comm;
  }
  void on_fork(const ForkEvent& event) {
    if (event.pid == event.parent) return;  // a thread
    const std::string comm = living(event.parent, event.time).process.comm;
    const ProcessBegin how = event.lived_before ? ProcessBegin::seen : ProcessBegin::forked;
    begin(event.pid, event.time, how).process.comm = comm;
  }
  /// Threads may end after the first one.
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

// What the recorder makes up of processes that were there before has no time of its own.
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
  // What was recorded was written afterwards.
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

namespace {

const OpenPolicy kFoundFile{
    .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};

bool has_name(const ProcSource& source, const std::string& comm) {
  const auto status = source.status();
  return status && *status && (*status)->comm == comm;
}

}  // namespace

Result<CandidateFile> open_candidate(const std::string& path, bool is_dump) {
  // Opened by its descriptor: what was looked at is what is read.
  const OwnedFd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return Failure(system_error("cannot open " + path, errno));
  const Result<OwnedFd> fd = open_found(found, path);
  if (!fd) return Failure(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) {
    return Failure(system_error("cannot open " + path, errno));
  }
  Result<Input> input = Input::from_descriptor(fd->get(), path, kFoundFile);
  if (!input) return Failure(std::move(input.error()));
  constexpr std::int64_t kSecond = 1'000'000'000;
  return CandidateFile{*std::move(input), is_dump, status.st_nlink,
                       status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec};
}

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

std::string objection_to(const CandidateFile& file, const ProcessInfo& process,
                         RecordedLives* lives) {
  if (file.links != 1) return "it has " + std::to_string(file.links) + " links";
  const auto life = lives != nullptr ? lives->life_of(process) : std::nullopt;
  if (!life) return "nothing tells when the process lived";
  const std::int64_t written = file.input.facts().mtime_ns;
  if (written + kTimeSlack < life->begin) return "it was last written before the process was seen";
  if (std::max(written, file.changed_ns) - kTimeSlack > life->end) {
    return "it was changed after the process was seen last";
  }
  if (!file.is_dump) return {};
  const auto header = Jitdump(file.input).header();
  if (!header) return "it is no jitdump";
  if (header->pid == static_cast<std::uint32_t>(process.pid)) return {};
  return "its header names process " + std::to_string(header->pid);
}

}  // namespace perfmap
