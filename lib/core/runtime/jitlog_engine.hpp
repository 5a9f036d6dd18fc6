#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "formats/jitlog_text.hpp"
#include "perfmap/jitlog_writer.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/jitlog_buffer.hpp"
#include "runtime/jitlog_file.hpp"
#include "runtime/jitlog_loops.hpp"
#include "runtime/jitlog_threads.hpp"
#include "runtime/jitlog_ticks.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

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
  static constexpr std::size_t kMostClock = 48;
  using ClockText = std::array<char, room_for_jitlog_section(kMostClock)>;
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
