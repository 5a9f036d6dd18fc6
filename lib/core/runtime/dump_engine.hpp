#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/uio.h>

#include "bytes/record_file.hpp"
#include "perfmap/jitdump_writer.hpp"
#include "runtime/dump_file.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/record_bytes.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

/// What JitdumpWriter has behind it: a file, a lock, the bytes of the records at hand. All may be
/// called from several threads; load(), move() and close() answer 0 or an errno value.
class DumpEngine final : public ForkAware {
 public:
  explicit DumpEngine(const JitdumpOptions& options) noexcept;
  ~DumpEngine();
  DumpEngine(const DumpEngine&) = delete;
  DumpEngine& operator=(const DumpEngine&) = delete;

  Result<void> open_own(const std::string& directory);
  Result<void> open(const std::string& path);
  Result<void> open(int fd, const std::string& name);
  std::string path() noexcept;
  const JitdumpOptions& options() const noexcept { return options_; }

  int load(const JitFunction& function, std::uint64_t& index) noexcept;
  int move(std::uint64_t index, Address from, Address to, std::uint64_t size) noexcept;
  int close() noexcept;

 private:
  Result<void> begin(const Result<DumpStart>& start, bool marker);
  Result<void> open_own_locked();
  int ready();
  int enter_process();
  int leave_parent() noexcept;
  std::string own_path() const;
  int make_records(const JitFunction& function, std::string_view name);
  int add_info(const JitFunction& function, std::uint64_t time);
  int add_lines(const JitFunction& function, std::uint64_t time);
  int append_with_zeros(std::uint64_t count) noexcept;
  int append(std::span<iovec> parts, std::uint64_t total) noexcept;
  int append_bytes() noexcept;
  std::uint32_t thread() const noexcept;
  bool before_fork() noexcept override { return mutex_.lock_for_fork(); }
  void after_fork(bool is_between) noexcept override {
    if (is_between) mutex_.unlock();
  }
  void begin_child(bool is_between) noexcept override;

  // On cache lines of their own: who waits for the lock is not to slow down who has it.
  alignas(64) SpinMutex mutex_;
  alignas(64) RecordFile file_;
  JitdumpOptions options_;
  std::string path_;
  std::string directory_;  // of open_own(); empty: a child has no dump
  RecordBytes bytes_;      // records on their way, all but the code
  pid_t pid_ = 0;
  bool is_own_ = false;  // pid_ is the process that writes
  std::uint64_t next_index_ = 1;
  unsigned generation_ = 0;
  bool to_be_made_ = false;  // a child's own dump, at its first record
  bool silent_ = false;      // a child's that is not to have one
};

}  // namespace perfmap
