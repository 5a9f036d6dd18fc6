#pragma once

#include <atomic>
#include <cstdint>

namespace perfmap {

/// A word that every child finds to be 0, however it was made, until it changes that: on a page
/// that the kernel wipes (MADV_WIPEONFORK, Linux 4.14).
class WipedWord {
 public:
  WipedWord() noexcept;
  ~WipedWord();
  WipedWord(const WipedWord&) = delete;
  WipedWord& operator=(const WipedWord&) = delete;
  /// nullptr where the kernel wipes nothing.
  std::atomic<std::uint64_t>* get() const noexcept { return word_; }
  /// It stays for ever.
  std::atomic<std::uint64_t>* release() noexcept;

 private:
  std::atomic<std::uint64_t>* word_ = nullptr;
};

/// How the writers of a process live through fork(2) and bare clone(2): each one sees afterwards
/// that it is in a child.
///
/// A WipedWord says so at the price of a load, with or without handlers, and is right in a pid
/// namespace where the child has its parent's number. Without it, getpid(2) and a handler of
/// fork(2) say it.
class ForkGuard {
 public:
  /// Whether there are handlers of fork(2): 0 or an errno value.
  static int install() noexcept;
  /// Never 0, and another number in every child than in any of its ancestors. Async-signal-safe;
  /// shared by those who share memory, such as the child of vfork(2).
  static unsigned generation() noexcept {
#ifdef PERFMAP_NO_FORK_CHECK  // to measure what it costs
    return 1;
#else
    const auto now = static_cast<unsigned>(
        word_.load(std::memory_order_acquire)->load(std::memory_order_relaxed));
    return now != 0 ? now : renew();
#endif
  }

 private:
  static unsigned renew() noexcept;

  static const int installed_;
  using Word = std::atomic<std::uint64_t>;
  static Word no_word_;  // always 0
  static std::atomic<Word*> word_;
};

/// An engine with a lock of its own, which the Registry takes around fork(2).
class ForkAware {
 public:
  /// Whether it stands still between two entries, and goes on doing so.
  virtual bool before_fork() noexcept = 0;
  /// In the parent and in the child, with what before_fork() has answered.
  virtual void after_fork(bool is_between) noexcept = 0;
  /// In the child, before fork(2) returns there, when all locks are free again.
  virtual void begin_child(bool /*is_between*/) noexcept {}

 protected:
  ~ForkAware() = default;

 private:
  friend class Registry;
  std::atomic<ForkAware*> next_{nullptr};
  bool is_between_ = false;
};

/// A lock that waits awake for some forty microseconds before it sleeps. Around one write(2) a
/// sleep costs more than the write: with std::mutex two threads took 1.4 times as long as without a
/// lock, with this one 1.05 times.
///
/// It knows in which process it was taken: one that a child inherits from a thread that the child
/// does not have is free there, however the child was made.
class SpinMutex {
 public:
  void lock() noexcept { lock(ForkGuard::generation()); }
  /// For who has asked for the ForkGuard::generation() already.
  void lock(unsigned generation) noexcept {
    const unsigned process = generation << kBits;
    for (int tries = 0; tries < kTries; ++tries) {
      if (take(process, kTaken)) return;
      // Longer each time: a lock that changes hands less often is faster for both.
      for (int i = 0; i < (tries + 1) * kPauses; ++i) pause();
    }
    // Whoever has slept cannot know whether others still do, so that it says so.
    while (!take(process, kAwaited)) {
      unsigned taken = process | kTaken;
      state_.compare_exchange_strong(taken, process | kAwaited, std::memory_order_relaxed);
      state_.wait(process | kAwaited, std::memory_order_relaxed);
    }
  }
  /// Whether it could be taken within a tenth of a second. Who holds it for longer waits for the
  /// outside, for the reader of a pipe, say, that is about to be forked: fork(2) does without it.
  bool lock_for_fork() noexcept;
  void unlock() noexcept {
    if ((state_.exchange(kFree, std::memory_order_release) & kMask) == kAwaited) {
      state_.notify_one();
    }
  }

 private:
  static constexpr unsigned kFree = 0;
  static constexpr unsigned kTaken = 1;
  static constexpr unsigned kAwaited = 2;
  static constexpr unsigned kBits = 2;
  static constexpr unsigned kMask = (1U << kBits) - 1;
  static constexpr int kTries = 5;
  static constexpr int kPauses = 64;

  bool take(unsigned process, unsigned how) noexcept {
    unsigned state = state_.load(std::memory_order_relaxed);
    const bool free = (state & kMask) == kFree || (state & ~kMask) != process;
    return free && state_.compare_exchange_strong(state, process | how, std::memory_order_acquire);
  }
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<unsigned> state_{kFree};
};

/// Every engine of the process, so that fork(2) finds each between two entries.
///
/// A child of a bare clone(2), which runs no handlers, may have been made while another thread was
/// in here: the list makes sense after every single store, and the locks are free in a child.
class Registry {
 public:
  static Registry& get() noexcept { return registry_; }
  void add(ForkAware* engine) noexcept;
  void remove(ForkAware* engine) noexcept;
  void before_fork() noexcept;
  void after_fork() noexcept;
  /// In a child of fork(2).
  void begin_child() noexcept;

  /// For what has to be done by one thread at a time around opening the process's own map.
  SpinMutex& setup_mutex() noexcept { return setup_mutex_; }

 private:
  template <class Act>
  void for_each(Act act) noexcept {
    for (ForkAware* at = first_.load(); at != nullptr; at = at->next_.load()) act(*at);
  }

  static Registry registry_;

  SpinMutex setup_mutex_;
  SpinMutex mutex_;
  std::atomic<ForkAware*> first_{nullptr};
  bool is_set_up_ = false;  // a fork is on its way that has the setup mutex
};

}  // namespace perfmap
