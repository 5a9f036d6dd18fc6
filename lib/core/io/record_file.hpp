#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <sys/uio.h>
#include <utility>

#include "base/descriptor.hpp"

namespace perfmap {

/// A file of binary records, opened for appending. Every function answers 0 or an errno value,
/// allocates nothing and is for one thread at a time.
class RecordFile {
 public:
  RecordFile() = default;
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  ~RecordFile() { close(); }

  /// Makes it, mode 0600; EEXIST where something of that name is there, be it a link.
  int create(const std::string& path) noexcept;
  /// Opens what is there. `own`: ELOOP for a link, EINVAL for what is no regular file, EPERM for a
  /// file of another user. Closed on exec, never truncated but by cut().
  int open(const std::string& path, bool own) noexcept;
  /// A copy of the descriptor, which is written as it is.
  int open(int fd) noexcept;
  /// Each goes on with the other's file.
  void swap(RecordFile& other) noexcept;
  bool is_open() const noexcept { return fd_.is_open(); }
  bool is_regular() const noexcept { return regular_; }
  int descriptor() const noexcept { return fd_.get(); }
  /// Somebody has closed our descriptor: see AppendFile.
  bool fd_was_replaced() const noexcept;
  int close() noexcept;

  /// Takes the file for this descriptor and its copies in children, as long as one of them is open:
  /// EBUSY where another one has it. size() is that of now. Files without locks are free.
  int lock() noexcept;
  /// Gives it back, for copies in children, too.
  void unlock() noexcept;

  /// Maps the first page PROT_READ|PROT_EXEC until close(): that makes an event in a recording of
  /// perf, by which it finds the file.
  int map_first_page() noexcept;

  /// Appends the parts, `total` bytes, with one writev(2). On failure nothing of them stays; where
  /// what a short write left cannot be cut off, because another process has written behind it,
  /// every later call fails. Changes `parts`. EINTR is retried.
  ///
  /// In the header, as every return behind a system call costs a mispredicted branch.
  int append(std::span<iovec> parts, std::size_t total) noexcept {
    if (torn_ != 0) [[unlikely]] {
      if (const int error = repair(); error != 0) return error;
    }
    const ssize_t count = ::writev(fd_.get(), parts.data(), static_cast<int>(parts.size()));
    if (count != static_cast<ssize_t>(total)) [[unlikely]] {
      return append_slowly(parts, total, count);
    }
    size_ += total;
    return 0;
  }

  /// Makes the file end at `size` where it still ends at size(); EBUSY where it does not.
  int cut(std::uint64_t size) noexcept;

  /// Bytes of the file when it was opened, and what was appended since.
  std::uint64_t size() const noexcept { return size_; }

 private:
  int take(Descriptor fd, bool own) noexcept;
  int append_slowly(std::span<iovec> parts, std::size_t total, ssize_t count) noexcept;
  int why_short(ssize_t count) const noexcept;
  int repair() noexcept;

  Descriptor fd_;
  void* marker_ = nullptr;
  bool regular_ = false;
  FileNumber file_;
  std::uint64_t size_ = 0;
  std::uint64_t torn_ = 0;  // bytes at the end that are no whole record
};

}  // namespace perfmap
