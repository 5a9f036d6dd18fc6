// SPDX-License-Identifier: MIT
#include "writer/fork_safe_file.hpp"

#include <algorithm>
#include <bit>
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

/// Whether MADV_WIPEONFORK works. qemu-user accepts any advice and wipes nothing, so it also
/// accepts the advice for the library's code, which no kernel wipes: it is mapped from a file.
bool wipes_on_fork(void* page, std::size_t size) noexcept {
  const auto code = reinterpret_cast<std::uintptr_t>(&wipes_on_fork) / size * size;
  return ::madvise(reinterpret_cast<void*>(code), size, MADV_WIPEONFORK) != 0 &&
         ::madvise(page, size, MADV_WIPEONFORK) == 0;
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

namespace {

/// The page of ForkHandlers' word: part of the library, so that it goes when the library is
/// unloaded. As large and as aligned as the largest page.
constexpr std::size_t kMaxPage = std::size_t{64} << 10;
alignas(kMaxPage) char word_page[kMaxPage];

}  // namespace

bool ForkHandlers::are_used() noexcept { return given.load() != 0; }

/// Called if the word is 0: it was wiped, or does not exist yet, or never will.
unsigned ForkHandlers::renew() noexcept {
  if (no_page.load()) return renew_by_pid();
  Word* word = word_.load();
  if (word == &no_word_) {
    if (page_size() > kMaxPage || !wipes_on_fork(word_page, page_size())) {
      no_page.store(true);
      return renew_by_pid();
    }
    auto* const made = reinterpret_cast<Word*>(word_page);  // all bytes are 0
    if (word_.compare_exchange_strong(word, made)) word = made;
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

bool SpinMutex::lock_contended(State ours) noexcept {
  if ((state_.load(std::memory_order_relaxed) & ~kMask) == ours) return false;
  for (int tries = 0; tries < kTries; ++tries) {
    // Spins longer each time: a lock that changes owners less often is faster for both.
    for (int i = 0; i < (tries + 1) * kPauses; ++i) pause();
    if (take(ours | kTaken)) return true;
  }
  sleep_until_taken(ours);
  return true;
}

namespace {

/// The half of a lock's state on which waiters sleep.
template <class Word>
unsigned* lower_half(Word& word) noexcept {
  auto* const halves = reinterpret_cast<unsigned*>(&word);
  return std::endian::native == std::endian::little ? halves : halves + 1;
}

}  // namespace

/// A waiter that has slept cannot know whether others still sleep, so it marks the lock as
/// contended. It goes on looking for a while before it sleeps: the lock is held for about a
/// microsecond, and a sleep with its wake-up costs several.
void SpinMutex::sleep_until_taken(State ours) noexcept {
  constexpr int kPausesFirst = 12, kLooks = 24;
  while (!take(ours | kAwaited)) {
    State seen = state_.load(std::memory_order_relaxed);
    if ((seen & kMask) == kTaken) {
      const State marked = (seen & ~kMask) | kAwaited;
      if (state_.compare_exchange_strong(seen, marked, std::memory_order_relaxed)) seen = marked;
    }
    if ((seen & kMask) != kAwaited) continue;
    for (int i = 0; i < kLooks && state_.load(std::memory_order_relaxed) == seen; ++i) {
      if (i < kPausesFirst) {
        pause();
      } else {
        ::sched_yield();
      }
    }
    sleepers_.fetch_add(1);
    ::syscall(SYS_futex, lower_half(state_), FUTEX_WAIT_PRIVATE, static_cast<unsigned>(seen),
              nullptr, nullptr, 0);
    sleepers_.fetch_sub(1);
  }
}

/// Either this sees the sleeper's count, or the kernel sees the free lock and does not let it
/// sleep. A child may have inherited the count of threads that do not exist there: then the call is
/// in vain.
void SpinMutex::wake_one() noexcept {
  if (sleepers_.load() == 0) return;
  ::syscall(SYS_futex, lower_half(state_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool SpinMutex::lock_for_fork() noexcept {
  constexpr int kLooks = 100;
  constexpr timespec kMoment{0, 1'000'000};
  const NoCancel uncancelled;
  for (int i = 0; i < kLooks; ++i) {
    if (take(owned_by_this_thread(ForkHandlers::generation()) | kTaken)) return true;
    ::nanosleep(&kMoment, nullptr);
  }
  return false;
}

namespace {

constinit SpinMutex list_mutex;
constinit bool is_list_held = false;  // by before_fork()
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

void ForkSafeFile::join_list_at_load() noexcept {
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
  is_list_held = list_mutex.lock();
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
  if (is_list_held) list_mutex.unlock();
  for (ForkSafeFile* at = first.load(); is_child && at != nullptr; at = at->next_.load()) {
    at->begin_child();
  }
}

/// What is inherited is copied at the child's first entry: most children exec, or never write.
void ForkSafeFile::begin_child() noexcept {
  const Locked locked(mutex_);
  is_whole_ = is_whole_ && is_between_;
  knows_fork_ = is_between_;
  if (!is_to_inherit()) enter_process();
}

int ForkSafeFile::enter_process() noexcept {
  const unsigned now = ForkHandlers::generation();
  if (generation_ == now) return 0;
  if (generation_ == 0) {  // the first process has no parent
    generation_ = now;
    return 0;
  }
  if (is_to_inherit()) {
    // On a full disk a copy takes long, and fails each time.
    constexpr std::uint64_t kPause = 1'000'000'000;
    const std::uint64_t time = now_ns(CLOCK_MONOTONIC_COARSE);
    if (time < retry_at_) return retry_error_;
    const int error = steps_.inherit(*this);
    if (error != 0 && error != kLetGo) {
      const bool is_full = error == ENOSPC || error == EDQUOT;
      retry_at_ = is_full ? time + kPause : 0;
      retry_error_ = error;
      return error;
    }
    if (error == 0) {
      generation_ = now;
      is_whole_ = true;
      knows_fork_ = false;
    } else {
      leave_parent();
    }
  } else {
    leave_parent();
  }
  retry_at_ = 0;
  return 0;
}

void ForkSafeFile::leave_parent() noexcept {
  generation_ = ForkHandlers::generation();
  steps_.detach(*this);
  is_whole_ = true;
  knows_fork_ = false;
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
