// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "perfmap/writer_options.hpp"
#include "writer/append_file.hpp"

/// The engine under the process's map, its jitdump and its log of loops. It is compiled without
/// exceptions and needs only libc at run time: no std::string, no operator new. Functions that
/// return an int return 0 or an errno value.

namespace perfmap {

inline std::size_t page_size() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// A word that reads as 0 in every new child, however that was created, until the child sets it: it
/// is on a page that the kernel wipes on fork (MADV_WIPEONFORK, Linux 4.14).
class WipedWord {
 public:
  WipedWord() noexcept;
  ~WipedWord();
  WipedWord(const WipedWord&) = delete;
  WipedWord& operator=(const WipedWord&) = delete;
  /// nullptr if the kernel does not wipe.
  std::atomic<std::uint64_t>* get() const noexcept { return word_; }

 private:
  std::atomic<std::uint64_t>* word_ = nullptr;
};

/// Detects that this process is a child, for all writers, after fork(2) and after a bare clone(2).
///
/// With a WipedWord that costs one load, works with or without fork handlers, and is right in a pid
/// namespace where the child has its parent's pid. Without it, getpid(2) and a handler of fork(2)
/// are used.
class ForkHandlers {
 public:
  /// 0 if the handlers of fork(2) are installed, else an errno value.
  static int install() noexcept;
  /// Whether generation() was ever called, in this process or a parent.
  static bool are_used() noexcept;
  /// Never 0, and in each child different from all its ancestors. Async-signal-safe. Processes that
  /// share memory, such as a child of vfork(2), share it.
  static unsigned generation() noexcept {
#ifdef PERFMAP_NO_FORK_CHECK  // to measure the cost of the check
    return 1;
#else
    const auto now = static_cast<unsigned>(
        word_.load(std::memory_order_acquire)->load(std::memory_order_relaxed));
    return now != 0 ? now : renew();
#endif
  }

 private:
  static unsigned renew() noexcept;

  using Word = std::atomic<std::uint64_t>;
  static inline constinit Word no_word_{0};  // always 0
  static inline constinit std::atomic<Word*> word_{&no_word_};
};

/// A lock that spins for about 40 microseconds before it sleeps. Around one write(2) a sleep costs
/// more than the write: with std::mutex two threads took 1.4 times as long as without a lock, with
/// this one 1.05 times.
///
/// It stores the fork generation in which it was taken: a lock that a child inherits from a thread
/// that does not exist in the child counts as free, however the child was created.
class SpinMutex {
 public:
  /// False: the calling thread has it already, as in a signal handler that interrupts a write.
  [[nodiscard]] bool lock() noexcept { return lock(ForkHandlers::generation()); }
  /// For callers that already have ForkHandlers::generation().
  [[nodiscard]] bool lock(unsigned generation) noexcept {
    const State ours = owned_by_this_thread(generation);
    if (take(ours | kTaken)) [[likely]]
      return true;
    return lock_contended(ours);
  }
  /// Whether the lock could be taken within 0.1 s. A thread that holds it longer is blocked from
  /// outside, for example by the reader of a pipe that is about to be forked; then fork(2) proceeds
  /// without the lock.
  bool lock_for_fork() noexcept;
  void unlock() noexcept {
    if ((state_.exchange(kFree) & kMask) == kAwaited) wake_one();
  }

 private:
  /// One word, so that a signal handler always sees whose the lock is: from the lowest bit, 2 bits
  /// kFree, kTaken or kAwaited, 30 bits of the generation, 32 bits of the owner. Waiters sleep on
  /// the lower half.
  using State = std::uint64_t;
  static constexpr State kFree = 0;
  static constexpr State kTaken = 1;
  static constexpr State kAwaited = 2;
  static constexpr unsigned kBits = 2;
  static constexpr State kMask = (State{1} << kBits) - 1;
  static constexpr State kGeneration = UINT32_MAX - kMask;
  static constexpr unsigned kOwnerBits = 32;
  static constexpr int kTries = 5;
  static constexpr int kPauses = 64;

  static State owned_by_this_thread(unsigned generation) noexcept {
    // What is at a thread's pointer is at least a cache line long.
#if defined(__GNUC__) && !defined(__clang__)
    const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) / 64;
#else
    const auto thread = reinterpret_cast<std::uintptr_t>(::pthread_self()) / 64;
#endif
    return State{thread} << kOwnerBits | State{generation << kBits};
  }
  bool take(State wanted) noexcept {
    State state = state_.load(std::memory_order_relaxed);
    const bool free = (state & kMask) == kFree || (state & kGeneration) != (wanted & kGeneration);
    return free && state_.compare_exchange_strong(state, wanted, std::memory_order_acquire);
  }
  bool lock_contended(State ours) noexcept;
  void sleep_until_taken(State ours) noexcept;
  void wake_one() noexcept;
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<State> state_{kFree};
  std::atomic<unsigned> sleepers_{0};
};

/// Holds a lock, and defers thread cancellation. is_deadlock(): the thread had the lock before, and
/// what it protects must not be touched.
class [[nodiscard]] Locked {
 public:
  explicit Locked(SpinMutex& mutex) noexcept : mutex_(mutex), is_held_(mutex.lock()) {}
  ~Locked() {
    if (is_held_) mutex_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  bool is_deadlock() const noexcept { return !is_held_; }

 private:
  NoCancel uncancelled_;
  SpinMutex& mutex_;
  const bool is_held_;
};

/// The same without cancellation: for an entry, which comes to no cancellation point on its way.
class [[nodiscard]] Held {
 public:
  Held(SpinMutex& mutex, unsigned generation) noexcept
      : mutex_(mutex), is_held_(mutex.lock(generation)) {}
  ~Held() {
    if (is_held_) mutex_.unlock();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  bool is_deadlock() const noexcept { return !is_held_; }

 private:
  SpinMutex& mutex_;
  const bool is_held_;
};

/// A writer's file, its lock, and what happens to both in a child: the state machine that all three
/// writers share.
///
/// In a child, however it was created, the first call enters the new process, once. With `inherit`
/// the child then continues in a file of its own that begins with what the parent had written at
/// the fork; until then it keeps the parent's file open, and fork(2) itself copies nothing. With
/// `fresh` it detaches from the parent's file and creates its own at its
/// first entry. With `off` it is silent. If a child cannot have a file of its own, it shares the
/// parent's, or is closed, or silent. The state is consistent at any time, so a child may be
/// created while another thread is in here.
///
/// Around fork(2) the locks of all writers are taken. A child of a bare clone(2) runs no handlers,
/// and may be created while another thread is in here: so the list is valid after every single
/// store, and the locks count as free in a child.
class ForkSafeFile {
 public:
  static constexpr std::size_t kMaxPath = 4096;
  ForkSafeFile(const ForkSafeFile&) = delete;
  ForkSafeFile& operator=(const ForkSafeFile&) = delete;

  /// Until leave_list(), fork(2) waits until this file is between two entries.
  void join_list() noexcept;
  /// The same while the library is loaded: no other thread uses it, and nothing is asked of the
  /// kernel.
  void join_list_at_load() noexcept;
  void leave_list() noexcept;
  /// The path that the calling process writes, or will write.
  void copy_path(char (&out)[kMaxPath]) noexcept {
    const Locked locked(mutex_);
    if (state_ == State::to_be_made && write_own_path(out) == 0) return;
    __builtin_memcpy(out, path_, kMaxPath);
  }

  static void before_fork() noexcept;
  static void after_fork(bool is_child) noexcept;

 protected:
  enum class State : std::uint8_t {
    closed,
    open,
    to_be_made,  // its own file is created at the first entry
    silent,      // entries are dropped without error
  };

  /// The steps that differ between the writers. All are called with the lock.
  struct Steps {
    int (*make)(ForkSafeFile& file) noexcept;  // opens this process's own file, at own_path()
    /// In a child: begins its own file with the parent's content; kLetGo: nothing to inherit.
    int (*inherit)(ForkSafeFile& file) noexcept;
    void (*detach)(ForkSafeFile& file) noexcept;  // in a child: drops the parent's state
    void (*before_fork)(ForkSafeFile& file) noexcept;
  };
  static constexpr int kLetGo = -2;
  template <class User>
  static constexpr Steps steps_of() noexcept {
    return {[](ForkSafeFile& file) noexcept { return static_cast<User&>(file).make(); },
            [](ForkSafeFile& file) noexcept { return static_cast<User&>(file).inherit(); },
            [](ForkSafeFile& file) noexcept { static_cast<User&>(file).detach(); },
            [](ForkSafeFile& file) noexcept { static_cast<User&>(file).prepare_fork(); }};
  }

  constexpr ForkSafeFile(const Steps& steps, State state, State orphan) noexcept
      : steps_(steps), orphan_(orphan), state_(state) {}
  ~ForkSafeFile() = default;
  void prepare_fork() noexcept {}

  /// Whether entries may be written: 0 if the file is open or silent.
  int ready() noexcept {
    if (ForkHandlers::generation() != generation_ || state_ != State::open) [[unlikely]]
      return ready_slowly();
    return 0;
  }
  /// In a child, once: detaches from the parent's file according to the policy. On failure the
  /// parent's file stays open, for another try.
  int enter_process() noexcept;
  void leave_parent() noexcept;
  /// In a child that has not entered: whether it is to begin with its parent's content.
  bool is_to_inherit() const noexcept {
    return generation_ != 0 && !is_entered() && state_ == State::open &&
           fork_.load() == ForkPolicy::inherit && has_own();
  }
  bool is_entered() const noexcept { return generation_ == ForkHandlers::generation(); }
  void refuse(int error) noexcept {
    state_ = State::closed;
    refusal_ = error;
  }

  /// The pattern of each process's path: "%d" in the name stands for the pid.
  constexpr int set_pattern(std::string_view directory, std::string_view name) noexcept {
    if (directory.size() + name.size() >= kMaxPath) return ENAMETOOLONG;
    literal_ = directory.size();
    directory.copy(pattern_, directory.size());
    name.copy(pattern_ + literal_, name.size());
    pattern_[literal_ + name.size()] = '\0';
    return 0;
  }
  constexpr int set_own_name(std::string_view directory, const JitFileName& name) noexcept {
    constexpr std::string_view kNumber = "%d";
    char pattern[32] = "/";
    std::size_t end = 1;
    for (const std::string_view part : {name.begin, kNumber, name.end}) {
      end += part.copy(pattern + end, sizeof pattern - end);
    }
    return set_pattern(directory, {pattern, end});
  }
  bool has_own() const noexcept;
  /// Sets path_ to the path of the calling process.
  int set_own_path() noexcept { return write_own_path(path_); }
  int write_own_path(char (&out)[kMaxPath]) const noexcept;
  int set_path(std::string_view path) noexcept;

  // On its own cache lines: waiting threads must not slow down the owner of the lock.
  alignas(64) SpinMutex mutex_;
  alignas(64) AppendFile file_;
  const Steps steps_;
  const State orphan_;  // state of a child without a file of its own; open: it shares the parent's
  State state_;
  bool is_whole_ = true;     // in a child: no thread was in here at the fork
  bool knows_fork_ = false;  // in a child that has not entered: before_fork() ran in the parent
  unsigned generation_ = 0;  // the generation that has entered; 0: none yet
  int refusal_ = EBADF;      // error returned for a closed file
  std::atomic<ForkPolicy> fork_{ForkPolicy::fresh};
  char path_[kMaxPath] = {};

 private:
  int ready_slowly() noexcept;
  void begin_child() noexcept;

  char pattern_[kMaxPath] = {};
  std::size_t literal_ = 0;
  std::atomic<ForkSafeFile*> next_{nullptr};
  bool is_between_ = false;
  std::uint64_t retry_at_ = 0;  // when the parent's content may be copied again after a failure
  int retry_error_ = 0;
};

}  // namespace perfmap
