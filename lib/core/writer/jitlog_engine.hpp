#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "io/record_file.hpp"
#include "io/whole_file.hpp"
#include "perfmap/jitlog_writer.hpp"
#include "perfmap/types.hpp"
#include "writer/fork_guard.hpp"
#include "writer/jitlog_text.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace perfmap {

/// An event as it is recorded.
struct JitlogEvent {
  std::uint64_t tick;
  JitlogLoop loop;
  std::uint32_t is_exit;
};

/// What one thread has recorded. Its owner alone adds events, without a lock; whoever has the lock
/// may read those that are there, and write them. Only the owner, with the lock, begins anew.
struct JitlogBuffer {
  explicit JitlogBuffer(std::uint32_t size)
      : capacity(size), events(std::make_unique_for_overwrite<JitlogEvent[]>(size)) {}

  void clear() noexcept {
    count.store(0, std::memory_order_release);  // first: a child that is made in between has none
    written = 0;
  }

  std::atomic<std::uint32_t> count{0};
  const std::uint32_t capacity;
  const std::unique_ptr<JitlogEvent[]> events;

  alignas(64) SpinMutex mutex;
  std::uint32_t written = 0;     // of the events; the log's lock is held, too, when it changes
  bool used = true;              // by a thread; with the lock of the list
  std::uint64_t first_tick = 0;  // no event of the thread is before it
  JitlogBuffer* next = nullptr;  // in the log's list
  JitlogPrefix prefix;           // of each line
};

/// The clock of a log.
class JitlogTicks {
 public:
  using Script = std::uint64_t (*)(void* context);

  explicit JitlogTicks(JitlogClock clock) noexcept : counts_(clock == JitlogClock::counter) {}
  /// One that a test plays, and that the log does not state.
  JitlogTicks(Script script, void* context) noexcept : script_(script), context_(context) {}

  /// Whether this machine has it.
  bool exists() const noexcept { return !counts_ || kHasCounter; }
  /// As the log states it; empty: it does not.
  std::string name() const {
    if (script_ != nullptr) return {};
    return counts_ ? counter_name() : "CLOCK_MONOTONIC ns";
  }
  std::uint64_t now() const noexcept { return counts_ ? counter() : now_elsewhere(); }

 private:
#if defined(__x86_64__) || defined(__i386__)
  static constexpr bool kHasCounter = true;
  static std::uint64_t counter() noexcept { return __rdtsc(); }
  static std::string counter_name() { return "tsc"; }
#elif defined(__aarch64__)
  static constexpr bool kHasCounter = true;
  static std::uint64_t counter() noexcept {
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
  static std::string counter_name() {
    std::uint64_t each_second = 0;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(each_second));
    return "cntvct " + std::to_string(each_second) + " Hz";
  }
#else
  static constexpr bool kHasCounter = false;
  static std::uint64_t counter() noexcept { return 0; }
  static std::string counter_name() { return {}; }
#endif

  [[gnu::noinline]] std::uint64_t now_elsewhere() const noexcept {
    if (script_ != nullptr) return script_(context_);
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  bool counts_ = false;
  Script script_ = nullptr;
  void* context_ = nullptr;
};

/// The file of a log, for one thread at a time: whole sections, or nothing.
class JitlogFile {
 public:
  /// Makes it, or empties the log that is there.
  Result<void> open(const std::string& path, bool own);
  /// A copy of the descriptor.
  int open(int fd) noexcept { return file_.open(fd); }
  /// Begins, in a child, the file that will be at `path`, with what this one has.
  int begin_copy(WholeFile& copy, const std::string& path) noexcept;
  /// Goes on with the copy, which appears at `path`. On failure everything is as it was.
  int become(WholeFile& copy, const std::string& path, bool own) noexcept;
  /// Both, with one writev(2). 0 or an errno value.
  int append(std::string_view first, std::string_view second) noexcept;
  /// 0 or an errno value. The log is another writer's to open, whatever children still have of it.
  int end() noexcept;
  /// A child's copy: the log is its parent's.
  void detach() noexcept { file_.close(); }

 private:
  RecordFile file_;
};

/// The loops of a log: names, as they are written, by numbers from 1. One that is there stays where
/// it is, so that its name is found without a lock.
class JitlogLoops {
 public:
  /// The number of that name, which may be new; 0: there are too many.
  JitlogLoop add(std::string name);
  bool has(JitlogLoop loop) const noexcept {
    return loop - 1 < count_.load(std::memory_order_acquire);
  }
  /// has() it.
  std::string_view name(JitlogLoop loop) const noexcept {
    const Place at = place(loop);
    return chunks_[at.chunk][at.index];
  }

  /// Around fork(2), so that a child finds them whole.
  bool lock_for_fork() noexcept { return mutex_.lock_for_fork(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  /// Chunk n holds 2^n loops.
  static constexpr std::size_t kChunks = 31;
  struct Place {
    std::size_t chunk;
    std::size_t index;
  };
  static Place place(JitlogLoop loop) noexcept {
    const auto chunk = static_cast<std::size_t>(std::bit_width(loop)) - 1;
    return {chunk, loop - (std::size_t{1} << chunk)};
  }

  SpinMutex mutex_;
  std::unordered_map<std::string, JitlogLoop> numbers_;  // whose keys stay where they are
  std::array<std::unique_ptr<std::string_view[]>, kChunks> chunks_;  // of numbers_
  std::atomic<std::uint32_t> count_{0};
};

class JitlogEngine;

/// The log that the calling thread recorded in last, in this process, and its buffer there.
struct JitlogHere {
  std::uint64_t key = 0;
  JitlogBuffer* buffer = nullptr;
};
inline constinit thread_local JitlogHere jitlog_here{};

/// All logs in which the calling thread has recorded. When it ends, it leaves them.
struct JitlogThread {
  /// Its buffer there, joined in that generation of processes; nullptr: none.
  static JitlogBuffer* find(const JitlogEngine& engine, unsigned generation) noexcept;
  /// Forgets logs that have been closed, too.
  static void add(std::shared_ptr<JitlogEngine> engine, JitlogBuffer& buffer, unsigned generation);
  /// In a child that goes on with the buffer.
  static void renew(const JitlogEngine& engine, unsigned generation) noexcept;
};

/// What JitlogWriter has behind it: a file, and a buffer for each thread. Threads that have
/// recorded share it, so that they may end after the writer. Numbers that are answered are 0 or
/// errno values.
///
/// Locks are taken in this order: the list's (mutex_), a buffer's, the file's.
class JitlogEngine final : public ForkAware, public std::enable_shared_from_this<JitlogEngine> {
 public:
  JitlogEngine(const JitlogOptions& options, const JitlogTicks& ticks);
  ~JitlogEngine();
  JitlogEngine(const JitlogEngine&) = delete;
  JitlogEngine& operator=(const JitlogEngine&) = delete;

  /// Each `%d` stands for the pid.
  Result<void> open(const std::string& pattern);
  Result<void> open(int fd, const std::string& name);
  std::string path() noexcept;
  std::uint64_t lost() const noexcept { return lost_.load(); }

  int loop(std::string_view name, JitlogLoop& loop) noexcept;

  int record(JitlogLoop loop, bool is_exit) noexcept {
    const JitlogHere& here = jitlog_here;
    const std::uint64_t key = key_.load(std::memory_order_relaxed) | ForkGuard::generation();
    if (here.key != key) [[unlikely]]
      return record_newly(loop, is_exit);
    return record_in(*here.buffer, loop, is_exit);
  }

  int flush() noexcept;
  int close() noexcept;

  /// False: an event would be refused, or dropped.
  bool is_recording() const noexcept { return key_.load(std::memory_order_relaxed) != 0; }
  /// A thread that has joined in that generation of processes has ended.
  void leave(JitlogBuffer& buffer, unsigned generation) noexcept;

 private:
  enum class State : std::uint8_t {
    closed,
    open,
    to_be_made,  // a child's own, at its first event
    silent,      // a child's that is not to have one
  };

  int record_in(JitlogBuffer& buffer, JitlogLoop loop, bool is_exit) noexcept {
    const std::uint32_t count = buffer.count.load(std::memory_order_relaxed);
    // Full: a signal handler records while its thread is writing the buffer.
    if (!loops_.has(loop) || count >= buffer.capacity) [[unlikely]]
      return loops_.has(loop) ? EDEADLK : EINVAL;
    buffer.events[count] = {ticks_.now(), loop, is_exit ? 1U : 0U};
    buffer.count.store(count + 1, std::memory_order_release);
    if (count + 1 == buffer.capacity) [[unlikely]]
      return write_full(buffer);
    return 0;
  }
  // Apart from the usual way, which has no need for a frame of its own then.
  [[gnu::noinline, gnu::cold]] int record_newly(JitlogLoop loop, bool is_exit) noexcept;
  [[gnu::noinline, gnu::cold]] int write_full(JitlogBuffer& buffer) noexcept;
  int enter_thread(JitlogBuffer*& buffer);
  int join(JitlogBuffer*& buffer);
  JitlogBuffer& unused_buffer();
  std::uint64_t tick_with_letter() const noexcept;

  void begin() noexcept;
  int ready();
  int make_own();
  void refuse(int error) noexcept;
  void enter_process();
  int inherit();
  int append_events(WholeFile& copy, JitlogBuffer& buffer) noexcept;
  void drop_events(JitlogBuffer* kept) noexcept;
  std::string own_path() const;
  bool has_pid() const noexcept;

  /// As much as a thread usually has: file systems make larger pieces of longer writes, so that a
  /// byte costs half as much as in writes of 64 KiB.
  static constexpr std::size_t kText = std::size_t{512} << 10;
  struct Block {
    std::string_view text;
    std::uint32_t end;  // of its events
  };
  Block format(const JitlogBuffer& buffer, std::uint32_t end) const noexcept;
  static constexpr std::size_t kMaxClock = 48;
  using ClockText = std::array<char, room_for_jitlog_section(kMaxClock)>;
  std::string_view clock_section(const JitlogBuffer& buffer, ClockText& bytes) const noexcept;
  int write_out(JitlogBuffer& buffer, bool begins_anew) noexcept;
  void write_all() noexcept;
  void note(int error) noexcept;

  bool before_fork() noexcept override;
  void after_fork(bool is_between) noexcept override;
  void begin_child(bool is_between) noexcept override;

  const JitlogOptions options_;
  const JitlogTicks ticks_;
  const std::string clock_;     // as the log states it
  const std::uint64_t serial_;  // of this log, in the high half
  JitlogLoops loops_;
  std::atomic<std::uint64_t> key_{0};  // serial_ while events are taken
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<int> error_{0};  // the first one

  alignas(64) SpinMutex mutex_;
  State state_ = State::closed;
  int refusal_ = EBADF;  // of a closed log
  std::string pattern_;  // empty: a descriptor's
  std::string path_;
  JitlogBuffer* first_ = nullptr;  // of all buffers, which live as long as this does
  std::uint32_t threads_ = 0;      // that have joined
  int owner_ = 0;                  // the tid of the only one that may
  unsigned generation_ = 0;
  bool is_whole_ = true;    // in a child: the parent was not writing
  bool has_loops_ = false;  // around fork(2): we have their lock

  alignas(64) SpinMutex file_mutex_;
  JitlogFile file_;
  std::unique_ptr<char[]> text_;  // on its way to the file
  bool begun_ = false;            // the log has bytes
};

}  // namespace perfmap
