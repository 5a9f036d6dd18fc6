#include "runtime/jitlog_engine.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>

#include "bytes/no_cancel.hpp"
#include "formats/jitlog_text.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> given{0};
  return (given.fetch_add(1, std::memory_order_relaxed) + 1) << 32;
}

std::uint32_t size_of(const JitlogOptions& options) noexcept {
  const std::uint32_t wanted = options.buffer_events;
  return wanted == 0 ? JitlogWriter::kUsualBuffer : std::min(wanted, JitlogWriter::kMostBuffer);
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
  if (begun_ || clock_.empty() || clock_.size() > kMostClock) return {};
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

}  // namespace perfmap
