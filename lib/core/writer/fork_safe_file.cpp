#include "writer/fork_safe_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <linux/futex.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfmap {
namespace {

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// The maximum number of generations; SpinMutex stores them in as many bits.
constexpr unsigned kMaxGenerations = (1U << 30) - 1;
std::atomic<unsigned> given{0};

/// Used if there is no wiped page: the owner of the generation in the high half, the generation in
/// the low half.
std::atomic<std::uint64_t> owner{0};
std::atomic<bool> no_page{false};

unsigned next_generation() noexcept {
  unsigned next = 0;
  while (next == 0) next = (given.fetch_add(1, std::memory_order_relaxed) + 1) & kMaxGenerations;
  return next;
}

/// Whether MADV_WIPEONFORK works. qemu-user accepts any advice, even an invalid one, and wipes
/// nothing.
bool wipes_on_fork(void* page, std::size_t size) noexcept {
  constexpr int kNoAdvice = 4711;
  return ::madvise(page, size, kNoAdvice) != 0 && ::madvise(page, size, MADV_WIPEONFORK) == 0;
}

unsigned renew_by_pid() noexcept {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  std::uint64_t known = owner.load();
  while (known >> 32 != pid) {
    const std::uint64_t wanted = pid << 32 | next_generation();
    if (owner.compare_exchange_strong(known, wanted)) known = wanted;
  }
  return static_cast<unsigned>(known);
}

}  // namespace

WipedWord::WipedWord() noexcept {
  const std::size_t size = page_size();
  char* const page = map_memory(size);
  if (page == nullptr) return;
  if (wipes_on_fork(page, size)) {
    word_ = new (page) std::atomic<std::uint64_t>(0);
  } else {
    ::munmap(page, size);
  }
}

WipedWord::~WipedWord() {
  if (word_ != nullptr) ::munmap(word_, page_size());
}

/// Called if the word is 0: it was wiped, or does not exist yet, or never will.
unsigned ForkHandlers::renew() noexcept {
  if (no_page.load()) return renew_by_pid();
  Word* word = word_.load();
  if (word == &no_word_) {
    WipedWord made;
    if (made.get() == nullptr) {
      no_page.store(true);
      return renew_by_pid();
    }
    if (word_.compare_exchange_strong(word, made.get())) word = made.release();
  }
  // The count is increased first: a child forked in between must not get the same number.
  const unsigned next = next_generation();
  std::uint64_t now = 0;
  return word->compare_exchange_strong(now, next) ? next : static_cast<unsigned>(now);
}

namespace {

/// Installed when the library is loaded, for two reasons. Fork handlers that are registered later,
/// and use the library, then run before ours take the locks and after ours release them. And a
/// child forked while another thread does the set-up would wait for that thread for ever.
const int kInstalled = [] {
  ForkHandlers::generation();
  return ::pthread_atfork([] { ForkSafeFile::before_fork(); },
                          [] { ForkSafeFile::after_fork(false); },
                          [] {
                            owner.store(0);  // in a new namespace the child may have its parent's
                                             // pid
                            ForkSafeFile::after_fork(true);
                          });
}();

}  // namespace

int ForkHandlers::install() noexcept { return kInstalled; }

/// A waiter that has slept cannot know whether others still sleep, so it marks the lock as
/// contended. It goes on looking for a while before it sleeps: the lock is held for about a
/// microsecond, and a sleep with its wake-up costs several.
void SpinMutex::sleep_until_taken(unsigned process) noexcept {
  constexpr int kPausesFirst = 12, kLooks = 24;
  const unsigned awaited = process | kAwaited;
  while (!take(process, kAwaited)) {
    unsigned taken = process | kTaken;
    state_.compare_exchange_strong(taken, awaited, std::memory_order_relaxed);
    for (int i = 0; i < kLooks && state_.load(std::memory_order_relaxed) == awaited; ++i) {
      if (i < kPausesFirst) {
        pause();
      } else {
        ::sched_yield();
      }
    }
    sleepers_.fetch_add(1);
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, awaited, nullptr, nullptr, 0);
    sleepers_.fetch_sub(1);
  }
}

/// Either this sees the sleeper's count, or the kernel sees the free lock and does not let it
/// sleep. A child may have inherited the count of threads that do not exist there: then the call is
/// in vain.
void SpinMutex::wake_one() noexcept {
  if (sleepers_.load() == 0) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool SpinMutex::lock_for_fork() noexcept {
  constexpr int kLooks = 100;
  constexpr timespec kMoment{0, 1'000'000};
  const NoCancel uncancelled;
  for (int i = 0; i < kLooks; ++i) {
    if (take(ForkHandlers::generation() << kBits, kTaken)) return true;
    ::nanosleep(&kMoment, nullptr);
  }
  return false;
}

namespace {

constinit SpinMutex list_mutex;
constinit std::atomic<ForkSafeFile*> first{nullptr};

}  // namespace

/// A file may already be in the list: a child inherits that from a thread that was about to finish
/// this.
void ForkSafeFile::join_list() noexcept {
  const Locked locked(list_mutex);
  for (const ForkSafeFile* at = first.load(); at != nullptr; at = at->next_.load()) {
    if (at == this) return;
  }
  next_.store(first.load());
  first.store(this);
}

void ForkSafeFile::leave_list() noexcept {
  const Locked locked(list_mutex);
  std::atomic<ForkSafeFile*>* link = &first;
  while (link->load() != nullptr && link->load() != this) link = &link->load()->next_;
  if (link->load() == this) link->store(next_.load());
}

void ForkSafeFile::before_fork() noexcept {
  list_mutex.lock();
  for (ForkSafeFile* at = first.load(); at != nullptr; at = at->next_.load()) {
    at->is_between_ = at->mutex_.lock_for_fork();
    const NoCancel uncancelled;
    if (at->is_between_) at->steps_.before_fork(*at);
  }
}

void ForkSafeFile::after_fork(bool is_child) noexcept {
  for (ForkSafeFile* at = first.load(); at != nullptr; at = at->next_.load()) {
    if (at->is_between_) at->mutex_.unlock();
  }
  list_mutex.unlock();
  for (ForkSafeFile* at = first.load(); is_child && at != nullptr; at = at->next_.load()) {
    at->begin_child();
  }
}

/// A failure shows at the child's first entry, which tries again.
void ForkSafeFile::begin_child() noexcept {
  const Locked locked(mutex_);
  is_whole_ = is_between_;
  enter_process();
  is_whole_ = true;
}

int ForkSafeFile::enter_process() noexcept {
  const unsigned now = ForkHandlers::generation();
  if (generation_ == now) return 0;
  if (generation_ == 0) {  // the first process has no parent
    generation_ = now;
    return 0;
  }
  const bool inherits = state_ == State::open && fork_.load() == ForkPolicy::inherit && has_own();
  const int error = inherits ? steps_.inherit(*this) : kLetGo;
  if (error != 0 && error != kLetGo) return error;
  if (error == 0) {
    generation_ = now;
  } else {
    leave_parent();
  }
  return 0;
}

void ForkSafeFile::leave_parent() noexcept {
  generation_ = ForkHandlers::generation();
  steps_.detach(*this);
  if (state_ == State::closed) return;
  if (!has_own()) {
    if (orphan_ != State::open) state_ = orphan_;
  } else {
    const bool off = state_ == State::silent || fork_.load() == ForkPolicy::off;
    state_ = off ? State::silent : State::to_be_made;
  }
}

int ForkSafeFile::ready_slowly() noexcept {
  const NoCancel uncancelled;
  if (const int error = enter_process(); error != 0) return error;
  if (state_ == State::to_be_made) {
    const int error = steps_.make(*this);
    if (error != 0 && state_ != State::closed) return error;
    if (error == 0) state_ = State::open;
  }
  return state_ == State::closed ? refusal_ : 0;
}

namespace {

constexpr std::string_view kPid = "%d";

/// Appends to a path of `used` bytes; false if it does not fit.
bool add_to(char (&path)[ForkSafeFile::kMaxPath], std::size_t& used,
            std::string_view more) noexcept {
  if (more.size() >= sizeof path - used) return false;
  std::memcpy(path + used, more.data(), more.size());
  used += more.size();
  path[used] = '\0';
  return true;
}

}  // namespace

int ForkSafeFile::set_path(std::string_view path) noexcept {
  std::size_t used = 0;
  return add_to(path_, used, path) ? 0 : ENAMETOOLONG;
}

bool ForkSafeFile::has_own() const noexcept {
  return pattern_[0] != '\0' && std::strstr(pattern_ + literal_, kPid.data()) != nullptr;
}

int ForkSafeFile::write_own_path(char (&out)[kMaxPath]) const noexcept {
  char pid[16];
  const auto digits = static_cast<std::size_t>(
      std::snprintf(pid, sizeof pid, "%ld", static_cast<long>(::getpid())));
  std::size_t used = 0;
  std::string_view rest = pattern_;
  bool fits = add_to(out, used, first_bytes(rest, literal_));
  rest.remove_prefix(literal_);
  for (std::size_t at = 0; fits && (at = rest.find(kPid)) != rest.npos;) {
    fits = add_to(out, used, first_bytes(rest, at)) && add_to(out, used, {pid, digits});
    rest.remove_prefix(at + kPid.size());
  }
  return fits && add_to(out, used, rest) ? 0 : ENAMETOOLONG;
}

}  // namespace perfmap
