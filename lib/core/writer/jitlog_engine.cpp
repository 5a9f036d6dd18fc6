#include "writer/jitlog_engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "perfmap/jitlog_writer.hpp"
#include "writer/fork_guard.hpp"
#include "writer/jitlog_text.hpp"

namespace perfmap {

namespace {

bool has_other_name(const RecordFile& file) noexcept {
  struct stat status {};
  return ::fstat(file.descriptor(), &status) != 0 || status.st_nlink > 1;
}

/// A log that is there, locked.
int open_existing(RecordFile& file, const std::string& path, bool own) noexcept {
  int error = file.open(path, own);
  if (error == 0 && own && has_other_name(file)) error = EMLINK;
  return error != 0 ? error : file.lock();
}

int open_locked(RecordFile& file, const std::string& path, bool own) noexcept {
  constexpr int kTries = 3;  // others may make and remove it meanwhile
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    error = file.create(path);
    if (error == 0) return file.lock();
    if (error != EEXIST) return error;
    error = open_existing(file, path, own);
    if (error != ENOENT) return error;
  }
  return error;
}

/// Of a file that has bytes.
bool is_log(const RecordFile& file) noexcept {
  std::array<char, 64> begin;
  const ssize_t got = ::pread(file.descriptor(), begin.data(), begin.size(), 0);
  return got > 0 && begins_as_jitlog({begin.data(), static_cast<std::size_t>(got)});
}

/// Whether the process's limit leaves no room for so many bytes more.
bool passes_limit(std::uint64_t size, std::uint64_t more) noexcept {
  rlimit max{};
  if (::getrlimit(RLIMIT_FSIZE, &max) != 0 || max.rlim_cur == RLIM_INFINITY) return false;
  return size > max.rlim_cur || more > max.rlim_cur - size;
}

iovec part(std::string_view bytes) noexcept {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> JitlogFile::open(const std::string& path, bool own) {
  int error = open_locked(file_, path, own);
  const bool has_bytes = error == 0 && file_.is_regular() && file_.size() != 0;
  if (has_bytes && !is_log(file_)) {
    file_.close();
    return Failure({Errc::bad_format, "cannot begin " + path + ": it is no log", EINVAL, {}});
  }
  if (has_bytes) error = file_.cut(0);
  if (error == 0) return {};
  file_.close();
  return Failure(system_error("cannot open " + path, error));
}

int JitlogFile::append(std::string_view first, std::string_view second) noexcept {
  const std::size_t total = first.size() + second.size();
  if (file_.is_regular() && passes_limit(file_.size(), total)) return EFBIG;
  std::array<iovec, 2> parts = {part(first), part(second)};
  return file_.append(parts, total);
}

int JitlogFile::begin_copy(WholeFile& copy, const std::string& path) noexcept {
  const int error = copy.create(path.c_str());
  return error != 0 ? error : copy.append_lines(file_.descriptor(), file_.size());
}

/// Where a former process of this pid has left its log, that goes.
int JitlogFile::become(WholeFile& copy, const std::string& path, bool own) noexcept {
  int error = copy.publish();
  if (error == EEXIST) {
    RecordFile former;
    error = open_existing(former, path, own);
    if (error == 0 && former.size() != 0 && !is_log(former)) error = EEXIST;
    if (error == 0 && ::unlink(path.c_str()) != 0) error = errno;
    if (error == 0) error = copy.publish();
  }
  RecordFile made;
  if (error == 0) error = open_existing(made, path, own);
  if (error == 0) file_.swap(made);
  return error;
}

int JitlogFile::end() noexcept {
  if (!file_.fd_was_replaced()) file_.unlock();
  return file_.close();
}

JitlogLoop JitlogLoops::add(std::string name) {
  const std::lock_guard lock(mutex_);
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const JitlogLoop next = count_.load(std::memory_order_relaxed) + 1;
  const Place at = place(next);
  if (at.chunk >= kChunks) return 0;
  auto& chunk = chunks_[at.chunk];
  if (chunk == nullptr) chunk = std::make_unique<std::string_view[]>(std::size_t{1} << at.chunk);
  const auto added = numbers_.emplace(std::move(name), next);
  chunk[at.index] = added.first->first;
  count_.store(next, std::memory_order_release);
  return next;
}

namespace {

struct Joined {
  std::shared_ptr<JitlogEngine> engine;
  JitlogBuffer* buffer;
  unsigned generation;
};
using Logs = std::vector<Joined>;

/// Not an object: destructors of other objects of the thread may record after AtEnd's.
constinit thread_local Logs* logs = nullptr;

struct AtEnd {
  AtEnd() noexcept = default;
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() {
    jitlog_here = {};
    const std::unique_ptr<Logs> left(std::exchange(logs, nullptr));
    if (left == nullptr) return;
    for (const Joined& log : *left) log.engine->leave(*log.buffer, log.generation);
  }
  bool used = false;
};
thread_local AtEnd at_end;

}  // namespace

JitlogBuffer* JitlogThread::find(const JitlogEngine& engine, unsigned generation) noexcept {
  if (logs == nullptr) return nullptr;
  for (const Joined& log : *logs) {
    if (log.engine.get() == &engine && log.generation == generation) return log.buffer;
  }
  return nullptr;
}

void JitlogThread::add(std::shared_ptr<JitlogEngine> engine, JitlogBuffer& buffer,
                       unsigned generation) {
  if (logs == nullptr) {
    logs = new Logs;
    at_end.used = true;
  }
  std::erase_if(*logs, [&](const Joined& log) {
    return !log.engine->is_recording() || (log.engine == engine && log.generation != generation);
  });
  logs->push_back({std::move(engine), &buffer, generation});
}

void JitlogThread::renew(const JitlogEngine& engine, unsigned generation) noexcept {
  if (logs == nullptr) return;
  for (Joined& log : *logs) {
    if (log.engine.get() == &engine) log.generation = generation;
  }
}

namespace {

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> given{0};
  return (given.fetch_add(1, std::memory_order_relaxed) + 1) << 32;
}

std::uint32_t size_of(const JitlogOptions& options) noexcept {
  const std::uint32_t wanted = options.buffer_events;
  return wanted == 0 ? JitlogWriter::kUsualBuffer : std::min(wanted, JitlogWriter::kMaxBuffer);
}

bool has_letter(std::uint64_t tick) noexcept {
  for (; tick != 0; tick >>= 4) {
    if ((tick & 15) > 9) return true;
  }
  return false;
}

}  // namespace

JitlogEngine::JitlogEngine(const JitlogOptions& options, const JitlogTicks& ticks)
    : options_(options),
      ticks_(ticks),
      clock_(ticks.name()),
      serial_(next_serial()),
      generation_(ForkGuard::generation()),
      text_(std::make_unique_for_overwrite<char[]>(kText)) {}

JitlogEngine::~JitlogEngine() {
  close();
  Registry::get().remove(this);
  while (first_ != nullptr) delete std::exchange(first_, first_->next);
}

Result<void> JitlogEngine::open(const std::string& pattern) {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  pattern_ = pattern;
  path_ = own_path();
  const Result<void> opened = file_.open(path_, options_.own_log);
  if (opened) begin();
  return opened;
}

Result<void> JitlogEngine::open(int fd, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  path_ = name;
  const int error = file_.open(fd);
  if (error != 0) return Failure(system_error("cannot open " + name, error));
  begin();
  return {};
}

void JitlogEngine::begin() noexcept {
  generation_ = ForkGuard::generation();
  begun_ = false;
  state_ = State::open;
  key_ = serial_;
}

std::string JitlogEngine::path() noexcept {
  const std::lock_guard lock(mutex_);
  return path_;
}

int JitlogEngine::loop(std::string_view name, JitlogLoop& loop) noexcept try {
  std::string written;
  append_jitlog_name(written, name);
  if (options_.names == NamePolicy::refuse && written != name) return EILSEQ;
  loop = loops_.add(std::move(written));
  return loop != 0 ? 0 : ENOMEM;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int JitlogEngine::record_newly(JitlogLoop loop, bool is_exit) noexcept try {
  const NoCancel uncancelled;
  JitlogBuffer* buffer = nullptr;
  const int error = enter_thread(buffer);
  return error != 0 || buffer == nullptr ? error : record_in(*buffer, loop, is_exit);
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

/// No buffer: events are dropped.
int JitlogEngine::enter_thread(JitlogBuffer*& buffer) {
  const std::lock_guard lock(mutex_);
  if (const int error = ready(); error != 0) return error;
  if (state_ != State::open) return 0;
  buffer = JitlogThread::find(*this, generation_);
  if (buffer == nullptr) {
    if (const int error = join(buffer); error != 0) return error;
  }
  jitlog_here = {serial_ | generation_, buffer};
  return 0;
}

int JitlogEngine::join(JitlogBuffer*& buffer) {
  const int tid = ::gettid();
  if (options_.one_thread && owner_ != 0 && owner_ != tid) return EPERM;
  JitlogBuffer& joined = unused_buffer();
  JitlogThread::add(shared_from_this(), joined, generation_);
  joined.used = true;
  joined.first_tick = clock_.empty() ? 0 : tick_with_letter();
  ++threads_;
  owner_ = tid;
  if (!options_.one_thread) joined.prefix = JitlogPrefix(std::to_string(threads_) + "# ");
  buffer = &joined;
  return 0;
}

/// Buffers stay: a child may be made at any time.
JitlogBuffer& JitlogEngine::unused_buffer() {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) {
    if (!at->used) return *at;
  }
  auto* const made = new JitlogBuffer(size_of(options_));
  made->used = false;
  made->next = first_;
  first_ = made;
  return *made;
}

/// The time is read, not changed: a clock takes a moment to get to the next letter. One that stands
/// still has none to offer.
std::uint64_t JitlogEngine::tick_with_letter() const noexcept {
  constexpr int kTries = 10'000;
  std::uint64_t tick = ticks_.now();
  for (int i = 0; i < kTries && !has_letter(tick); ++i) tick = ticks_.now();
  return tick;
}

/// A part of the events that are to be written, as many as there is room for.
JitlogEngine::Block JitlogEngine::format(const JitlogBuffer& buffer,
                                         std::uint32_t end) const noexcept {
  char* const begin = text_.get();
  const char* const limit = begin + kText;
  char* at = begin;
  std::uint32_t i = buffer.written;
  for (; i != end; ++i) {
    const JitlogEvent& event = buffer.events[i];
    const std::string_view name = loops_.name(event.loop);
    const auto room = static_cast<std::size_t>(limit - at);
    if (room_for_jitlog_section(name.size()) > room) break;
    at = write_jitlog_section(at, event.is_exit != 0 ? kJitlogExit : kJitlogEnter, event.tick, name,
                              buffer.prefix);
  }
  return {{begin, static_cast<std::size_t>(at - begin)}, i};
}

/// Where the log has not begun: which clock it goes by. Empty where that is not stated.
std::string_view JitlogEngine::clock_section(const JitlogBuffer& buffer,
                                             ClockText& bytes) const noexcept {
  if (begun_ || clock_.empty() || clock_.size() > kMaxClock) return {};
  return {bytes.data(), write_jitlog_section(bytes.data(), kJitlogClock, buffer.first_tick, clock_,
                                             buffer.prefix)};
}

int JitlogEngine::write_out(JitlogBuffer& buffer, bool begins_anew) noexcept {
  const std::lock_guard lock(buffer.mutex);
  const std::uint32_t end = buffer.count.load(std::memory_order_acquire);
  const std::lock_guard file_lock(file_mutex_);
  ClockText clock;
  int error = 0;
  while (buffer.written != end) {
    const Block block = format(buffer, end);
    error = file_.append(clock_section(buffer, clock), block.text);
    begun_ = begun_ || error == 0;
    if (error != 0) lost_ += end - buffer.written;
    buffer.written = error != 0 ? end : block.end;
  }
  note(error);
  if (begins_anew) buffer.clear();
  return error;
}

void JitlogEngine::note(int error) noexcept {
  int none = 0;
  if (error != 0) error_.compare_exchange_strong(none, error);
}

int JitlogEngine::write_full(JitlogBuffer& buffer) noexcept {
  const NoCancel uncancelled;
  return write_out(buffer, true);
}

void JitlogEngine::write_all() noexcept {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) write_out(*at, false);
}

int JitlogEngine::flush() noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (generation_ != ForkGuard::generation()) enter_process();
  if (state_ == State::open) write_all();
  return error_.load();
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int JitlogEngine::close() noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (generation_ != ForkGuard::generation()) enter_process();
  const bool was_open = state_ == State::open;
  key_ = 0;
  state_ = State::closed;  // before the file is: a child of this moment is to know
  if (!was_open) return error_.load();
  write_all();
  const std::lock_guard file_lock(file_mutex_);
  note(file_.end());
  return error_.load();
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

void JitlogEngine::leave(JitlogBuffer& buffer, unsigned generation) noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  // Otherwise what it holds is the parent's.
  const bool ours = generation == generation_ && generation == ForkGuard::generation();
  if (!ours) return;
  if (state_ == State::open) write_out(buffer, true);
  buffer.used = false;
}

namespace {

constexpr std::string_view kPid = "%d";

}  // namespace

bool JitlogEngine::has_pid() const noexcept { return pattern_.find(kPid) != std::string::npos; }

std::string JitlogEngine::own_path() const {
  const std::string pid = std::to_string(::getpid());
  std::string path = pattern_;
  for (std::size_t at = 0; (at = path.find(kPid, at)) != std::string::npos; at += pid.size()) {
    path.replace(at, kPid.size(), pid);
  }
  return path;
}

/// Whether events are taken: 0, unless the log is closed. With the lock of the list.
int JitlogEngine::ready() {
  if (ForkGuard::generation() != generation_) enter_process();
  if (state_ == State::to_be_made) return make_own();
  return state_ == State::closed ? refusal_ : 0;
}

int JitlogEngine::make_own() {
  path_ = own_path();
  const Result<void> opened = file_.open(path_, options_.own_log);
  if (opened) {
    begin();
    return 0;
  }
  refuse(opened.error().sys_errno);
  return refusal_;
}

void JitlogEngine::refuse(int error) noexcept {
  state_ = State::closed;
  refusal_ = error;
  note(error);
}

/// In a child, once: lets go of the parent's log, as the policy says. Of one that was being written
/// when the child was made nobody knows what it held: the child's begins empty then.
void JitlogEngine::enter_process() {
  const State parents = state_;
  generation_ = ForkGuard::generation();
  key_ = 0;
  lost_ = 0;
  error_ = 0;
  const bool own = has_pid() && options_.fork != ForkPolicy::off;
  if (parents == State::open && own && is_whole_ && options_.fork == ForkPolicy::inherit) {
    state_ = State::open;
    if (const int error = inherit(); error != 0) refuse(error);
  } else if (parents != State::closed) {
    state_ = own && parents != State::silent ? State::to_be_made : State::silent;
  }
  if (state_ == State::open) {
    key_ = serial_;
    return;
  }
  file_.detach();
  drop_events(nullptr);
  threads_ = 0;
  owner_ = 0;
}

/// Threads that the child does not have are done.
void JitlogEngine::drop_events(JitlogBuffer* kept) noexcept {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) {
    at->clear();
    at->used = at == kept;
  }
}

/// What a thread of the parent had recorded, and not written yet.
int JitlogEngine::append_events(WholeFile& copy, JitlogBuffer& buffer) noexcept {
  const std::uint32_t end = buffer.count.load(std::memory_order_acquire);
  ClockText clock;
  int error = 0;
  while (error == 0 && buffer.written < end) {
    const Block block = format(buffer, end);
    error = copy.append(clock_section(buffer, clock));
    if (error == 0) error = copy.append(block.text);
    begun_ = true;
    buffer.written = block.end;
  }
  return error;
}

int JitlogEngine::inherit() {
  const std::string path = own_path();
  WholeFile copy;
  int error = file_.begin_copy(copy, path);
  for (JitlogBuffer* at = first_; at != nullptr && error == 0; at = at->next) {
    error = append_events(copy, *at);
  }
  if (error == 0) error = file_.become(copy, path, options_.own_log);
  if (error != 0) return error;
  path_ = path;
  JitlogThread::renew(*this, generation_);
  JitlogBuffer* const kept = JitlogThread::find(*this, generation_);
  owner_ = kept != nullptr ? ::gettid() : 0;
  drop_events(kept);
  return 0;
}

bool JitlogEngine::before_fork() noexcept {
  has_loops_ = loops_.lock_for_fork();
  return file_mutex_.lock_for_fork();
}

void JitlogEngine::after_fork(bool is_between) noexcept {
  if (is_between) file_mutex_.unlock();
  if (has_loops_) loops_.unlock();
}

/// Under inherit its log is there from now on; else its first event makes it.
void JitlogEngine::begin_child(bool is_between) noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  is_whole_ = is_between;
  enter_process();
  is_whole_ = true;
} catch (const std::bad_alloc&) {
  refuse(ENOMEM);
}

namespace {

Error failed(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EILSEQ) error.code = Errc::invalid_argument;
  return error;
}

}  // namespace

struct JitlogWriter::State {
  explicit State(std::shared_ptr<JitlogEngine> made) noexcept : engine(std::move(made)) {}
  ~State() { engine->close(); }
  State(const State&) = delete;
  const std::shared_ptr<JitlogEngine> engine;
};

JitlogWriter::JitlogWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitlogWriter::JitlogWriter(JitlogWriter&&) noexcept = default;
JitlogWriter& JitlogWriter::operator=(JitlogWriter&&) noexcept = default;
JitlogWriter::~JitlogWriter() = default;

namespace {

Result<std::shared_ptr<JitlogEngine>> make_engine(const JitlogOptions& options) {
  const JitlogTicks ticks(options.clock);
  if (!ticks.exists()) {
    return Failure({Errc::unsupported, "no counter of this machine is known", ENOTSUP, {}});
  }
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  auto engine = std::make_shared<JitlogEngine>(options, ticks);
  Registry::get().add(engine.get());
  return engine;
}

}  // namespace

Result<JitlogWriter> JitlogWriter::open(const std::string& path, const JitlogOptions& options) {
  auto engine = make_engine(options);
  if (!engine) return Failure(std::move(engine).error());
  Result<void> opened = (*engine)->open(path);
  if (!opened) return Failure(std::move(opened).error());
  return JitlogWriter(std::make_unique<State>(*std::move(engine)));
}

Result<JitlogWriter> JitlogWriter::to_descriptor(int fd, std::string name,
                                                 const JitlogOptions& options) {
  auto engine = make_engine(options);
  if (!engine) return Failure(std::move(engine).error());
  Result<void> opened = (*engine)->open(fd, name);
  if (!opened) return Failure(std::move(opened).error());
  return JitlogWriter(std::make_unique<State>(*std::move(engine)));
}

Result<JitlogLoop> JitlogWriter::loop(std::string_view name) {
  JitlogLoop loop = 0;
  const int error = state_->engine->loop(name, loop);
  if (error != 0) return Failure(failed("cannot name a loop in " + path(), error));
  return loop;
}

int JitlogWriter::enter(JitlogLoop loop) noexcept { return state_->engine->record(loop, false); }
int JitlogWriter::exit(JitlogLoop loop) noexcept { return state_->engine->record(loop, true); }

Result<void> JitlogWriter::flush() {
  const int error = state_->engine->flush();
  if (error == 0) return {};
  return Failure(failed("cannot write " + path(), error));
}

Result<void> JitlogWriter::close() {
  const int error = state_->engine->close();
  if (error == 0) return {};
  return Failure(failed("cannot write " + path(), error));
}

std::uint64_t JitlogWriter::lost() const noexcept { return state_->engine->lost(); }
std::string JitlogWriter::path() const { return state_->engine->path(); }

}  // namespace perfmap
