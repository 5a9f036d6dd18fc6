#include <mutex>
#include <new>
#include <unistd.h>

#include "bytes/no_cancel.hpp"
#include "runtime/jitlog_engine.hpp"

namespace perfmap {
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
  file_.let_go();
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

}  // namespace perfmap
