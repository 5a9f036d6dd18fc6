// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "base/utf8.hpp"
#include "perfmap/writer_options.hpp"

/// Files and buffers that stay valid when a process forks in the middle of any call. Compiled
/// without exceptions; needs only libc at run time: no std::string, no operator new. Functions that
/// return an int return 0 or an errno value.

namespace perfmap {

std::uint64_t now_ns(clockid_t clock) noexcept;
inline std::uint64_t monotonic_ns() noexcept { return now_ns(CLOCK_MONOTONIC); }

/// How many nanoseconds this process has lived, including system sleep and the time before exec(2);
/// at most one clock tick too much. False if /proc does not say.
bool get_process_age(std::uint64_t& ns) noexcept;

/// Memory without malloc(): in a child of a bare clone(2) malloc's lock may be held. nullptr and
/// errno on failure.
char* map_memory(std::size_t size) noexcept;

/// A byte buffer that only grows, for one thread at a time. A child forked while another thread is
/// in add() or clear() sees the content from before or after: bytes are stored before the size
/// changes, and memory is freed only after the pointer is replaced. Does not use malloc(), whose
/// lock may be held in a child of a bare clone(2).
class GrowingBuffer {
 public:
  constexpr GrowingBuffer() = default;
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;
  ~GrowingBuffer() { release(); }

  char* data() const noexcept { return data_.load(std::memory_order_relaxed); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  std::size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  /// What was added and not dropped. capacity() and size() count what was dropped, too.
  std::string_view text() const noexcept { return {data() + begin(), size() - begin()}; }
  std::size_t begin() const noexcept { return begin_.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == begin(); }
  /// False: no memory, and nothing was added. `first` is the initial capacity.
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
  /// Leaves the bytes where they are until clear().
  void drop_first(std::size_t count) noexcept {
    if (begin() + count == size()) return clear();
    begin_.store(begin() + count, std::memory_order_release);
  }
  void clear() noexcept {
    begin_.store(0, std::memory_order_release);
    set_size(0);
  }
  void release() noexcept;

 private:
  bool grow(std::size_t wanted, std::size_t first) noexcept;

  std::atomic<char*> data_{nullptr};
  std::atomic<std::size_t> capacity_{0};
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> begin_{0};
};

/// The file size limit of this process; UINT64_MAX: none.
std::uint64_t size_limit() noexcept;

/// While it lives, a write beyond the process's file size limit fails with EFBIG in this thread,
/// and raises no SIGXFSZ.
class NoSizeSignal {
 public:
  NoSizeSignal() noexcept;
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

/// A file that gets its name when it is complete; if the process dies before, nothing remains.
/// Allocates nothing.
class WholeFile {
 public:
  WholeFile() = default;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile() { drop_hidden(); }

  /// Starts the file that will be at `path`: without a name, or, if the file system does not
  /// support that or there is no /proc, with a hidden name in the same directory. `path` is copied.
  int create(const char* path) noexcept;
  int append(std::string_view bytes) noexcept;
  /// Appends the complete lines among the first `size` bytes of `source`, whose file position does
  /// not change.
  int append_lines(int source, std::uint64_t size) noexcept;
  /// EEXIST if the path exists.
  int publish() noexcept;
  /// Like publish(); if the path exists, `remove_former()` must remove it first.
  template <class Remove>
  int publish_over(Remove remove_former) noexcept {
    constexpr int kTries = 3;  // others may do the same at the same time
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
  char hidden_[kMaxPath] = {};  // temporary name; empty: none
  std::uint64_t size_ = 0;
};

/// write(2) and writev(2), but no points of cancellation: pthread_setcancelstate(3) around them
/// would cost more than the rest of an entry.
inline ssize_t write_now(int fd, const char* bytes, std::size_t size) noexcept {
  return ::syscall(SYS_write, fd, bytes, size);
}
inline ssize_t writev_now(int fd, const iovec* parts, std::size_t count) noexcept {
  if (count == 1) return write_now(fd, static_cast<const char*>(parts->iov_base), parts->iov_len);
  return ::syscall(SYS_writev, fd, parts, count);
}

/// A file opened for appending complete lines or records. Allocates nothing; for one thread at a
/// time. Closed on exec, created with mode 0600, never truncated except where a function says so.
class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile() { close(); }
  /// Swaps the files.
  void swap(AppendFile& other) noexcept;

  /// What is refused for files in /tmp. regular: links (ELOOP), and everything but regular files
  /// (EINVAL); without it links are followed, and devices and FIFOs are written. ours: files of
  /// another user (EPERM). one_name: files with several hard links, too (EMLINK), because another
  /// user may have linked them.
  enum Rules : unsigned { any = 0, regular = 1, ours = 2, one_name = 4 };
  enum class Create : std::uint8_t { never, if_absent, always };  ///< always: EEXIST otherwise
  int open(const char* path, Create create, unsigned rules) noexcept;
  /// Opens a duplicate of the descriptor, with its mode and offset.
  int open(int fd) noexcept;
  bool is_open() const noexcept { return fd_.is_open(); }
  bool is_regular() const noexcept { return regular_; }
  /// Whether other code has closed our descriptor, as daemons do with all descriptors, and perhaps
  /// reopened its number for another file. close() then does not close it, and returns EBADF.
  bool fd_was_replaced() const noexcept;
  /// The open regular file; is() compares with another one.
  FileNumber file() const noexcept { return regular_ ? file_ : FileNumber{}; }
  bool is(FileNumber file) const noexcept { return is_open() && regular_ && file_ == file; }
  /// Whether the path leads to this file.
  bool leads_to(const char* path) const noexcept;
  /// Opens the file again if other code has closed our descriptor, under its path. EBADF if that
  /// does not lead to it any more, or if others have written to it. For records, which are locked;
  /// `is_mapped`: a mapping keeps the lock of the closed descriptor.
  int open_again(const char* path, unsigned rules, bool is_mapped) noexcept;
  /// Returns the error of close(2): on some file systems a failed write is only reported then.
  int close() noexcept;
  /// For other code that writes to this file.
  int descriptor() const noexcept { return fd_.get(); }

  /// The size of the file when it was opened, plus what was appended since.
  std::uint64_t size() const noexcept { return size_; }
  /// The current size, with the bytes of other writers; position(): where the last write through
  /// this open file description ended, in any process. 0: unknown.
  std::uint64_t size_now() const noexcept;
  std::uint64_t position() const noexcept;
  /// Updates size(): another process may have truncated the file. Only for regular files.
  void restat() noexcept {
    if (regular_) size_ = size_now();
  }

  // Lines: other processes may append, too.

  struct MapRules {
    bool own = false;  ///< regular, ours and one_name
    /// It is the map of this process, and marked so. A map that another process has open, such as
    /// one of another container, is EBUSY.
    bool of_process = false;
    /// With it: a map of an earlier process, or of this one before exec(2), is emptied, unless it
    /// is open for writing. Without a mark: if it was last written more than a second before this
    /// process began.
    bool empty_stale = false;
    bool alone = false;  ///< takes the lock that other writers check exclusively
  };
  /// open() for a map. start() reports what the file held.
  int open_map(const char* path, MapRules rules) noexcept;
  /// What the file held when it was opened.
  MapStart start() const noexcept { return is_open() ? start_ : MapStart::none; }

  static constexpr std::uint64_t kLook = std::uint64_t{1} << 20;
  /// Appends whole lines with one write(2). On failure nothing of them stays: the rest of a short
  /// write is cut off if the file still ends there. If another process has written after it, its
  /// last byte becomes a newline; if neither is possible, the next lines begin with a newline, so
  /// that no entry is glued to half a line. EINTR is retried. EFBIG at the process's file size
  /// limit, without SIGXFSZ; a limit that is lowered while the file is open is seen within kLook
  /// bytes.
  ///
  /// In the header, because each return after a system call costs a mispredicted branch. append()
  /// is no cancellation point, either form of it.
  int append(std::string_view lines) noexcept {
    if (newline_first_ || size_ + lines.size() > look_at_) [[unlikely]]
      return append_with_care(lines);
    const ssize_t count = write_now(fd_.get(), lines.data(), lines.size());
    if (count != static_cast<ssize_t>(lines.size())) [[unlikely]] {
      return append_slowly(lines, count);
    }
    size_ += lines.size();
    return 0;
  }
  /// Like append() for lines that the caller keeps on failure: the written bytes are removed from
  /// `lines`, and the rest must be appended before anything else. Only pipes and terminals accept a
  /// part; to a file on a full disk, or at its size limit, the lines that fit are written.
  int append_from(std::string_view& lines) noexcept;
  /// Appends the current content of the file at `path`, and a newline if it does not end with one.
  /// Refuses this file itself and non-regular files (EINVAL), and a copy that would make this file
  /// longer than `max_bytes` unless that is 0 (EFBIG). On any other failure, copied whole lines may
  /// remain.
  int copy_from(const char* path, bool follow_link, std::uint64_t max_bytes) noexcept;
  /// Switches to a file at `path`, a map of our own. It begins with the whole lines among the first
  /// `size` bytes of the open file, which must be readable, followed by `more`. It appears
  /// complete, unless a file exists that must not be emptied: then they are appended to that. On
  /// failure nothing changes, and an existing file still ends with a whole line.
  int inherit_map(const char* path, std::uint64_t size, std::string_view more,
                  bool empty_stale) noexcept;
  bool wants_newline() const noexcept { return newline_first_; }
  /// After another descriptor has written to the file, with the state of its last line.
  void goes_on(bool newline_first) noexcept {
    restat();
    newline_first_ = newline_first;
  }

  // Records: only this writer appends.

  /// open() or else creates the file, then lock(). On failure nothing is open.
  int open_locked(const char* path, unsigned rules, bool& was_made) noexcept;
  /// Locks the file for this descriptor and its copies in children, until all are closed. EBUSY if
  /// another writer has the lock. Updates size(). Succeeds on file systems without locks.
  int lock() noexcept;
  /// Releases the lock, also for copies in children.
  void unlock() noexcept {
    if (regular_ && is_open()) lock_file(fd_.get(), F_UNLCK);
  }
  /// Appends the parts, `total` bytes, with one writev(2). On failure nothing of them stays. If the
  /// rest of a short write cannot be cut off, because another process has written after it, every
  /// later call fails. Changes `parts`. EINTR is retried.
  int append(iovec* parts, std::size_t count, std::size_t total) noexcept {
    if (torn_ != 0 || size_ + total > look_at_) [[unlikely]]
      return append_records_with_care(parts, count, total);
    const ssize_t written = writev_now(fd_.get(), parts, count);
    if (written != static_cast<ssize_t>(total)) [[unlikely]] {
      return append_records_slowly(parts, count, total, written);
    }
    size_ += total;
    return 0;
  }
  /// Truncates the file to `size` if it still ends at size(); else EBUSY.
  int cut(std::uint64_t size) noexcept;

 private:
  void own(Descriptor fd) noexcept;
  int append_bytes(std::string_view& bytes) noexcept;
  int append_what_fits(std::string_view& lines) noexcept;
  int append_with_care(std::string_view lines) noexcept;
  int append_records_with_care(iovec* parts, std::size_t count, std::size_t total) noexcept;
  bool look_ahead(std::uint64_t more) noexcept;
  int append_slowly(std::string_view lines, ssize_t count) noexcept;
  int append_records_slowly(iovec* parts, std::size_t count, std::size_t total,
                            ssize_t written) noexcept;
  bool is_at_limit() const noexcept;
  void take_back(std::string_view left) noexcept;
  int cut_torn() noexcept;
  bool ends_in_newline(const char* path, bool own) const noexcept;
  int begin_map(bool of_process, bool empty_stale, bool alone) noexcept;
  int copy_lines(int source, std::uint64_t count) noexcept;

  Descriptor fd_;
  FileNumber file_;
  bool regular_ = false;
  bool newline_first_ = false;
  MapStart start_ = MapStart::none;
  std::uint64_t size_ = 0;
  /// From this size on, a write first looks at the process's file size limit.
  std::uint64_t look_at_ = 0;
  std::uint64_t torn_ = 0;  // bytes of an incomplete record at the end
};

}  // namespace perfmap
