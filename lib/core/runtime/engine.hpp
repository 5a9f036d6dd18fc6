#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/append_file.hpp"
#include "bytes/mapped_tail.hpp"
#include "perfmap/writer.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

/// What MapWriter and the process's own map share: a file, a lock, a buffer. Every function answers
/// 0 or an errno value and never throws; all may be called from several threads.
class Engine final : public ForkAware {
 public:
  Engine() noexcept;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// `flush_at_fork`: what is buffered goes to the file before a child looks at it.
  void configure(const WriterOptions& options, bool flush_at_fork = false) noexcept;
  const std::string& path() const noexcept { return path_; }

  int open(const std::string& path) noexcept;
  /// On a copy of the descriptor; `name` is for messages.
  int open(int fd, const std::string& name) noexcept;
  bool is_open() noexcept;
  int write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept;
  int copy(const std::string& path) noexcept;
  int flush() noexcept;
  int close() noexcept;
  /// In a child: lets go of the parent's file without writing what the parent has buffered.
  void abandon() noexcept;

 private:
  template <class Open>
  int open_as(const std::string& path, Open open) noexcept;
  int write_slowly(std::uint64_t start, std::uint64_t size, std::string_view name);
  // Inlined for the reason that AppendFile::append() is.
  [[gnu::always_inline]] inline int append(std::string_view line) noexcept;
  int open_file(const std::string& path) noexcept;
  int append_mapped(std::string_view line) noexcept;
  int copy_behind_tail(const std::string& path) noexcept;
  int keep(std::string_view line) noexcept;
  int flush_locked() noexcept;
  void forget_parent() noexcept;
  void before_fork() noexcept override;
  void after_fork() noexcept override;

  // On cache lines of their own: who waits for the lock is not to slow down who has it.
  alignas(64) SpinMutex mutex_;
  alignas(64) AppendFile file_;
  MappedTail tail_;  // of file_, where options_.mapped is possible
  WriterOptions options_;
  std::atomic<NamePolicy> names_{NamePolicy::escape};  // options_.names, for before the lock
  bool flush_at_fork_ = false;
  std::string path_;
  std::string buffer_;
  std::uint64_t oldest_ns_ = 0;  // when the first byte of buffer_ came
  unsigned generation_ = 0;
};

}  // namespace perfmap
