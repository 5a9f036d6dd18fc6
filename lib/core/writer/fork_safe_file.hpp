#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/writer.hpp"

/// The engine under the process's map, its jitdump and its log of loops. It is compiled without
/// exceptions and needs libc alone at run time: no std::string, no operator new. Functions that
/// answer an int answer 0 or an errno value.

namespace perfmap {

std::uint64_t now_ns(clockid_t clock) noexcept;
inline std::uint64_t monotonic_ns() noexcept { return now_ns(CLOCK_MONOTONIC); }

/// For how many nanoseconds this process has lived, sleep of the machine included and exec(2)
/// notwithstanding; at most one tick of the clock too much. False where /proc does not say.
bool get_process_age(std::uint64_t& ns) noexcept;

/// std::string_view::substr() needs libstdc++ to throw; these cut where the text ends.
constexpr std::string_view first_bytes(std::string_view text, std::size_t count) noexcept {
  return {text.data(), count < text.size() ? count : text.size()};
}
constexpr std::string_view without_first(std::string_view text, std::size_t count) noexcept {
  text.remove_prefix(count < text.size() ? count : text.size());
  return text;
}

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
  std::atomic<std::uint64_t>* release() noexcept { return std::exchange(word_, nullptr); }

 private:
  std::atomic<std::uint64_t>* word_ = nullptr;
};

/// How the writers of a process live through fork(2) and bare clone(2): each one sees afterwards
/// that it is in a child.
///
/// A WipedWord says so at the price of a load, with or without handlers, and is right in a pid
/// namespace where the child has its parent's number. Without it, getpid(2) and a handler of
/// fork(2) say it.
class ForkHandlers {
 public:
  /// Whether there are handlers of fork(2).
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

  using Word = std::atomic<std::uint64_t>;
  static inline constinit Word no_word_{0};  // always 0
  static inline constinit std::atomic<Word*> word_{&no_word_};
};

/// A lock that waits awake for some forty microseconds before it sleeps. Around one write(2) a
/// sleep costs more than the write: with std::mutex two threads took 1.4 times as long as without a
/// lock, with this one 1.05 times.
///
/// It knows in which process it was taken: one that a child inherits from a thread that the child
/// does not have is free there, however the child was made.
class SpinMutex {
 public:
  void lock() noexcept { lock(ForkHandlers::generation()); }
  /// For callers that have asked for the ForkHandlers::generation() already.
  void lock(unsigned generation) noexcept {
    const unsigned process = generation << kBits;
    for (int tries = 0; tries < kTries; ++tries) {
      if (take(process, kTaken)) return;
      // Longer each time: a lock that changes hands less often is faster for both.
      for (int i = 0; i < (tries + 1) * kPauses; ++i) pause();
    }
    sleep_until_taken(process);
  }
  /// Whether it could be taken within a tenth of a second. Who holds it for longer waits for the
  /// outside, for the reader of a pipe, say, that is about to be forked: fork(2) does without it.
  bool lock_for_fork() noexcept;
  void unlock() noexcept {
    if ((state_.exchange(kFree, std::memory_order_release) & kMask) == kAwaited) wake_one();
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
  void sleep_until_taken(unsigned process) noexcept;
  void wake_one() noexcept;
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<unsigned> state_{kFree};
};

/// Holds a lock, and puts cancellation off.
class [[nodiscard]] Locked {
 public:
  explicit Locked(SpinMutex& mutex) noexcept : mutex_(mutex) { mutex.lock(); }
  ~Locked() { mutex_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  NoCancel uncancelled_;
  SpinMutex& mutex_;
};

/// Bytes in memory that only grows. For one thread at a time; but a copy of it that a child got
/// while another thread was in add() or clear() holds what was there before, or after: bytes are
/// there before they count, and memory goes only when nothing points to it. Uses no malloc(), whose
/// lock a child of a bare clone(2) may find taken.
class GrowingBuffer {
 public:
  constexpr GrowingBuffer() = default;
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;
  ~GrowingBuffer() { release(); }

  char* data() const noexcept { return data_.load(std::memory_order_relaxed); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  std::size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == 0; }
  std::string_view text() const noexcept { return {data(), size()}; }
  /// False: no memory, and nothing was added. `first` is how much to begin with.
  bool add(std::string_view bytes, std::size_t first) noexcept {
    const std::size_t size = this->size();
    if (bytes.size() > capacity() - size && !grow(size + bytes.size(), first)) return false;
    if (!bytes.empty()) __builtin_memcpy(data() + size, bytes.data(), bytes.size());
    set_size(size + bytes.size());
    return true;
  }
  /// Makes room for so many bytes more.
  bool reserve(std::size_t more, std::size_t first) noexcept {
    return more <= capacity() - size() || grow(size() + more, first);
  }
  void set_size(std::size_t size) noexcept { size_.store(size, std::memory_order_release); }
  /// Not for a child to see: of what is no file, which no child inherits, only a part is dropped.
  void drop_first(std::size_t count) noexcept;
  void clear() noexcept { set_size(0); }
  void release() noexcept;

 private:
  bool grow(std::size_t wanted, std::size_t first) noexcept;

  std::atomic<char*> data_{nullptr};
  std::atomic<std::size_t> capacity_{0};
  std::atomic<std::size_t> size_{0};
};

/// A file that appears under its name when it is whole, and not at all if the process dies before.
/// Allocates nothing.
class WholeFile {
 public:
  WholeFile() = default;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile() { drop_hidden(); }

  /// Begins the file that will be at `path`, which is kept: without a name, or, where the file
  /// system has no such files or there is no /proc, with a hidden one in the same directory.
  int create(const char* path) noexcept;
  int append(std::string_view bytes) noexcept;
  /// The whole lines among the first `size` bytes of `source`, whose position does not move.
  int append_lines(int source, std::uint64_t size) noexcept;
  /// EEXIST where something is there already.
  int publish() noexcept;
  /// The same, once `remove_former()` has made room for it.
  template <class Remove>
  int publish_over(Remove remove_former) noexcept {
    constexpr int kTries = 3;  // others may do the same meanwhile
    int error = publish();
    for (int i = 0; error == EEXIST && i < kTries; ++i) {
      error = remove_former();
      if (error == 0) error = publish();
    }
    return error;
  }

  std::uint64_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return fd_.get(); }
  /// Opened for reading and for appending.
  Descriptor take() noexcept { return std::move(fd_); }

 private:
  int create_named() noexcept;
  void drop_hidden() noexcept;
  static constexpr std::size_t kMaxPath = 4096;

  Descriptor fd_;
  const char* path_ = nullptr;
  char hidden_[kMaxPath] = {};  // the name until then; empty: none
  std::uint64_t size_ = 0;
};

/// A file opened for appending whole lines, or whole records. Allocates nothing; for one thread at
/// a time. Closed on exec, created with mode 0600, never truncated but where a function says so.
class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile() { close(); }
  /// Each goes on with the other's file.
  void swap(AppendFile& other) noexcept;

  /// What is refused of files in /tmp. regular: links (ELOOP), and all but regular files (EINVAL);
  /// without it links are followed, devices and FIFOs are written. ours: files of another user
  /// (EPERM). one_name: files with another name, too (EMLINK), which somebody may have given them.
  enum Rules : unsigned { any = 0, regular = 1, ours = 2, one_name = 4 };
  enum class Create : std::uint8_t { never, if_absent, always };  ///< always: EEXIST otherwise
  int open(const char* path, Create create, unsigned rules) noexcept;
  /// A copy of the descriptor, which is written as it is.
  int open(int fd) noexcept;
  bool is_open() const noexcept { return fd_.is_open(); }
  bool is_regular() const noexcept { return regular_; }
  /// Somebody has closed our descriptor, as daemons do with all that they find, and may have opened
  /// something else by its number. close() leaves that alone, and says EBADF.
  bool fd_was_replaced() const noexcept;
  /// The regular file that is open; is(): whether it is that one.
  FileNumber file() const noexcept { return regular_ ? file_ : FileNumber{}; }
  bool is(FileNumber file) const noexcept { return is_open() && regular_ && file_ == file; }
  /// Whether the path does.
  bool leads_to(const char* path) const noexcept;
  /// As close(2) says: on some file systems only now a write turns out to have failed.
  int close() noexcept;
  /// For what else writes to this very file.
  int descriptor() const noexcept { return fd_.get(); }

  /// Bytes of the file when it was opened, and what was appended since.
  std::uint64_t size() const noexcept { return size_; }
  /// What the file has now, whoever wrote it, and where the last write through this description of
  /// it ended, in whichever process. 0: nobody knows.
  std::uint64_t size_now() const noexcept;
  std::uint64_t position() const noexcept;
  /// Asks how long the file is now: somebody may have cut it. Of no interest for what is no file.
  void restat() noexcept {
    if (regular_) size_ = size_now();
  }

  // Lines, which other processes may append, too.

  /// open() for a map. `own`: regular and one_name. Says by start() what is there, and empties it
  /// if it is an earlier process's and `empty_stale`: only if it is ours, was last written more
  /// than a second before this process began, and no writer has it open. Takes the lock by which
  /// other writers notice this one: shared, but that of who wants to be `alone`.
  int open_map(const char* path, bool own, bool empty_stale = false, bool alone = false) noexcept;
  /// What was there when it was opened.
  MapStart start() const noexcept { return is_open() ? start_ : MapStart::none; }

  /// Appends whole lines with one write(2). On failure nothing of them stays: what a short write
  /// left is cut off again where the file still ends there. Where another process has written
  /// behind it, its last byte becomes a newline; where neither can be done, the next lines begin
  /// with one: nothing stays glued to half a line. EINTR is retried.
  ///
  /// In the header, as every return behind a system call costs a mispredicted branch.
  int append(std::string_view lines) noexcept {
    if (newline_first_) [[unlikely]]
      return append_behind_newline(lines);
    const ssize_t count = ::write(fd_.get(), lines.data(), lines.size());
    if (count != static_cast<ssize_t>(lines.size())) [[unlikely]] {
      return append_slowly(lines, count);
    }
    size_ += lines.size();
    return 0;
  }
  /// Appends lines that are kept where that fails: what was written of them is taken off `lines`,
  /// which are to be tried again then, before anything else is appended. Only a pipe or a terminal
  /// takes a part.
  int append_from(std::string_view& lines) noexcept;
  /// Appends what the file at `path` has now, and a newline if it ends without. Refuses this very
  /// file (EINVAL), what is no regular file (EINVAL), and what would make this one longer than
  /// `max_bytes` unless that is 0 (EFBIG). On any other failure whole lines may stay behind.
  int copy_from(const char* path, bool follow_link, std::uint64_t max_bytes) noexcept;
  /// Goes on with a file at `path`, a map of our own, that begins with the whole lines among the
  /// first `size` bytes of the one that is open, which has to be readable, and with `more` behind
  /// them. It appears whole, unless there is a file already that is not to be emptied: that one is
  /// appended to. On failure everything is as it was, and that other file ends with a whole line.
  int inherit_map(const char* path, std::uint64_t size, std::string_view more,
                  bool empty_stale) noexcept;
  bool wants_newline() const noexcept { return newline_first_; }
  /// Somebody else has written to it; whether it ends in half a line, they know.
  void goes_on(bool newline_first) noexcept {
    restat();
    newline_first_ = newline_first;
  }

  // Records, which this writer alone appends.

  /// open(), or else makes the file, and lock(). On failure nothing is open.
  int open_locked(const char* path, unsigned rules, bool& was_made) noexcept;
  /// Takes the file for this descriptor and its copies in children, as long as one of them is open:
  /// EBUSY where another one has it. size() is that of now. Files without locks are free.
  int lock() noexcept;
  /// Gives it back, for copies in children, too.
  void unlock() noexcept {
    if (regular_ && is_open()) lock_file(fd_.get(), F_UNLCK);
  }
  /// Appends the parts, `total` bytes, with one writev(2). On failure nothing of them stays; where
  /// what a short write left cannot be cut off, because another process has written behind it,
  /// every later call fails. Changes `parts`. EINTR is retried.
  int append(iovec* parts, std::size_t count, std::size_t total) noexcept {
    if (torn_ != 0) [[unlikely]] {
      if (const int error = cut_torn(); error != 0) return error;
    }
    const ssize_t written = ::writev(fd_.get(), parts, static_cast<int>(count));
    if (written != static_cast<ssize_t>(total)) [[unlikely]] {
      return append_records_slowly(parts, count, total, written);
    }
    size_ += total;
    return 0;
  }
  /// Makes the file end at `size` where it still ends at size(); EBUSY where it does not.
  int cut(std::uint64_t size) noexcept;

 private:
  int append_bytes(std::string_view& bytes) noexcept;
  int append_behind_newline(std::string_view lines) noexcept;
  int append_slowly(std::string_view lines, ssize_t count) noexcept;
  int append_records_slowly(iovec* parts, std::size_t count, std::size_t total,
                            ssize_t written) noexcept;
  bool is_at_limit() const noexcept;
  void take_back(std::string_view left) noexcept;
  int cut_torn() noexcept;
  bool ends_in_newline(const char* path, bool own) const noexcept;
  MapStart begin_map(bool empty_stale, bool alone) noexcept;
  int copy_lines(int source, std::uint64_t count) noexcept;

  Descriptor fd_;
  FileNumber file_;
  bool regular_ = false;
  bool newline_first_ = false;
  MapStart start_ = MapStart::none;
  std::uint64_t size_ = 0;
  std::uint64_t torn_ = 0;  // bytes at the end that are no whole record
};

/// A writer's file, its lock, and what becomes of both in a child: the one state machine of the
/// three writers.
///
/// In a child, however it was made, the first one to look enters the new process, once: under
/// `inherit` it goes on with a file of its own that begins with the parent's, at the latest when
/// fork(2) returns there; under `fresh` it lets go of the parent's and makes one of its own at its
/// first entry; under `off` it is silent. Where a child may have no file of its own, it shares the
/// parent's, or is closed, or silent. Nothing that a child looks at is ever half changed, so that
/// it may be made while another thread is in here.
///
/// Around fork(2) the locks of all are taken. A child of a bare clone(2), which runs no handlers,
/// may have been made while another thread was in here: the list makes sense after every single
/// store, and the locks are free in a child.
class ForkSafeFile {
 public:
  static constexpr std::size_t kMaxPath = 4096;
  ForkSafeFile(const ForkSafeFile&) = delete;
  ForkSafeFile& operator=(const ForkSafeFile&) = delete;

  /// From now on until leave_list() fork(2) finds this between two entries.
  void join_list() noexcept;
  void leave_list() noexcept;
  /// The path that the calling process writes.
  void copy_path(char (&out)[kMaxPath]) noexcept {
    const Locked locked(mutex_);
    __builtin_memcpy(out, path_, kMaxPath);
  }

  static void before_fork() noexcept;
  static void after_fork(bool is_child) noexcept;

 protected:
  enum class State : std::uint8_t {
    closed,
    open,
    to_be_made,  // this process's own, at its first entry
    silent,      // entries are dropped, successfully
  };

  /// What the users do in their own ways, all with the lock.
  struct Steps {
    int (*make)(ForkSafeFile& file) noexcept;  // opens this process's own file, at own_path()
    /// In a child: begins its own file with the parent's; kLetGo: nothing is to be inherited.
    int (*inherit)(ForkSafeFile& file) noexcept;
    void (*detach)(ForkSafeFile& file) noexcept;  // in a child: of what is the parent's
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

  /// Whether entries may be written: 0 where the file is open, or silent.
  int ready() noexcept {
    if (ForkHandlers::generation() != generation_ || state_ != State::open) [[unlikely]]
      return ready_slowly();
    return 0;
  }
  /// In a child, once: lets go of the parent's file, as the policy says. On failure the parent's
  /// stays, for another try.
  int enter_process() noexcept;
  void leave_parent() noexcept;
  bool is_entered() const noexcept { return generation_ == ForkHandlers::generation(); }
  void refuse(int error) noexcept {
    state_ = State::closed;
    refusal_ = error;
  }

  /// Where each process's own file is: "%d" in the name stands for the pid.
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
  /// path_ becomes the calling process's.
  int set_own_path() noexcept { return write_own_path(path_); }
  int write_own_path(char (&out)[kMaxPath]) const noexcept;
  int set_path(std::string_view path) noexcept;

  // On cache lines of their own: who waits for the lock is not to slow down who has it.
  alignas(64) SpinMutex mutex_;
  alignas(64) AppendFile file_;
  const Steps steps_;
  const State orphan_;  // a child's where it has no file of its own; open: it shares the parent's
  State state_;
  bool is_whole_ = true;     // in a child: no thread of the parent was in here
  unsigned generation_ = 0;  // that has entered; 0: none has yet
  int refusal_ = EBADF;      // of a closed file
  std::atomic<ForkPolicy> fork_{ForkPolicy::fresh};
  char path_[kMaxPath] = {};

 private:
  int ready_slowly() noexcept;
  void begin_child() noexcept;

  char pattern_[kMaxPath] = {};
  std::size_t literal_ = 0;
  std::atomic<ForkSafeFile*> next_{nullptr};
  bool is_between_ = false;
};

}  // namespace perfmap
