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

}  // namespace perfmap
