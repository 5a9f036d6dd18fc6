#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/append_file.hpp"
#include "io/mapped_tail.hpp"
#include "perfmap/writer.hpp"
#include "writer/fork_guard.hpp"

namespace perfmap {

/// Lines that wait to be written. For one thread at a time; but a copy of it that a child got while
/// another thread was in add() or clear() holds what was there before, or after: bytes are there
/// before they count, and memory goes only when nothing points to it. Uses no malloc(), whose lock
/// a child of a bare clone(2) may find taken.
class LineBuffer {
 public:
  LineBuffer() = default;
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;
  ~LineBuffer();

  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == 0; }
  std::string_view text() const noexcept { return {data_.load(), size()}; }
  /// False: no memory, and nothing was added. `most` is how much it is ever going to hold.
  bool add(std::string_view line, std::size_t max) noexcept;
  /// Not for a child to see: of what is no file, which no child inherits, only a part is dropped.
  void drop_first(std::size_t count) noexcept;
  void drop_last(std::size_t count) noexcept { set_size(size() - count); }
  void clear() noexcept { set_size(0); }

 private:
  bool grow(std::size_t wanted, std::size_t max) noexcept;
  void set_size(std::size_t size) noexcept { size_.store(size, std::memory_order_release); }

  std::atomic<char*> data_{nullptr};
  std::atomic<std::size_t> capacity_{0};
  std::atomic<std::size_t> size_{0};
};

/// What MapWriter and the process's own map share: a file, a lock, a buffer. Every function answers
/// 0 or an errno value and never throws; all may be called from several threads.
///
/// In a child, however it was made, it goes on with the same file and without what the parent has
/// buffered, unless it is told to abandon or to inherit that file first. Nothing that a child looks
/// at is ever half changed, so that it may be made while another thread is in here.
class Engine final : public ForkAware {
 public:
  /// write()'s answer at the cap, for who calls ask_for_room() when it holds no lock.
  static constexpr int kAtCap = -1;

  Engine() noexcept;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// `one_process`: in a child write() fails with EBADF until it abandons or inherits the file.
  void configure(const WriterOptions& options, bool one_process = false) noexcept;
  /// From the next open() on every entry is one write(2).
  void write_through() noexcept;

  int open(const char* path, bool empty_stale = false) noexcept;
  /// On a copy of the descriptor.
  int open(int fd) noexcept;
  bool is_open() noexcept;
  /// Whether there is a file to go on with, or to inherit from: see AppendFile::fd_was_replaced().
  bool has_file() noexcept;
  MapStart start() noexcept;
  int write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept;
  /// Calls the callback, and answers whether to try again.
  bool ask_for_room() noexcept;
  int copy(const char* path) noexcept;
  int flush() noexcept;
  int close() noexcept;

  /// In a child: lets go of the parent's file without writing what the parent has buffered.
  /// `own_path` is where the child's is to be.
  void abandon(const char* own_path) noexcept;
  /// In a child: goes on with a file of its own that begins with what the parent had written, or
  /// had in its buffer, when it forked. On failure the parent's file stays open, for another try.
  int inherit(const char* path, bool empty_stale) noexcept;

 private:
  template <class Open>
  int open_as(Open open) noexcept;
  int write_slowly(std::uint64_t start, std::uint64_t size, std::string_view name);
  // Inlined for the reason that AppendFile::append() is.
  [[gnu::always_inline]] inline int append(std::string_view line) noexcept;
  int open_file(const char* path, bool empty_stale) noexcept;
  int open_tail(const char* path) noexcept;
  int append_mapped(std::string_view line) noexcept;
  int copy_behind_tail(const char* path) noexcept;
  int keep(std::string_view line) noexcept;
  int flush_locked() noexcept;
  std::uint64_t inherited_size() const noexcept;
  void forget_parent() noexcept;
  bool before_fork() noexcept override;
  void after_fork(bool is_between) noexcept override;

  /// What is in flight from the buffer to the file: a child that is made meanwhile has it twice.
  struct Flight {
    std::atomic<std::uint64_t> to{0};   // where in the file it begins
    std::atomic<std::size_t> bytes{0};  // 0: nothing is
  };

  // On cache lines of their own: who waits for the lock is not to slow down who has it.
  alignas(64) SpinMutex mutex_;
  alignas(64) AppendFile file_;
  MappedTail tail_;  // of file_, where options_.mapped is possible
  WriterOptions options_;
  std::atomic<NamePolicy> names_{NamePolicy::escape};  // options_.names, for before the lock
  bool one_process_ = false;
  LineBuffer buffer_;
  Flight flight_;
  std::uint64_t oldest_ns_ = 0;     // when the first byte of buffer_ came
  bool asked_ = false;              // for room, since a write succeeded
  FileNumber of_parent_;            // that this process has let go of, where its own path leads to
  std::uint64_t size_at_fork_ = 0;  // of the file, other writers' entries included; 0: unknown
  unsigned generation_ = 0;
};

}  // namespace perfmap
