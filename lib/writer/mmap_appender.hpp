// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/filler.hpp"
#include "writer/truncation_guard.hpp"

namespace perfmap {

/// The end of a perf map, mapped so that entries are written without system calls.
///
/// The file grows by filler lines, which every reader takes for symbols of size 0 at address 0. An
/// entry is built inside the first filler line and appears with one store. So a concurrent reader,
/// or a reader after a SIGKILL, finds only whole lines. Disk space is reserved before it is mapped.
/// Functions return 0 or an errno value; for one thread at a time.
class MmapAppender {
 public:
  MmapAppender() = default;
  MmapAppender(const MmapAppender&) = delete;
  MmapAppender& operator=(const MmapAppender&) = delete;
  ~MmapAppender() { cut(); }

  /// EBUSY if any process, including this one, has the file at `path` open for writing.
  static int check_unused(const char* path, bool follow_link) noexcept;

  /// Maps the end of the file of `fd`, and locks the file through the new descriptor. EBUSY if
  /// another writer has a lock. Stays closed and returns 0 if space cannot be reserved: for all but
  /// regular files, and on file systems that move data when it is overwritten.
  int open(int fd, const char* path, bool newline_first) noexcept;
  bool is_open() const noexcept { return fd_.is_open(); }

  /// Appends a line of at least kLeast bytes. EIO if another process has truncated the file, and
  /// a TruncationGuard stood in for it: then the line is lost. If the tail is closed after the
  /// call, nothing was written, and the file needs write(2) from now on: space cannot be reserved,
  /// or another writer came.
  int append(std::string_view line) noexcept {
    if (line_end_ - end_ < line.size() + kAhead) [[unlikely]] {
      if (const int error = make_room(line.size()); error != 0) return error;
    }
    publish(line);
    end_ += line.size();
    return range_.was_truncated() ? lose() : 0;
  }

  /// Removes the filler until the next append().
  int cut() noexcept;
  /// cut(), then closes for good.
  int close() noexcept;
  /// For a child, which has neither the mapping nor a right to the file.
  void forget() noexcept;
  /// Closes and leaves the file unchanged.
  void detach() noexcept;

  /// Whether an entry must be preceded by a newline, because the file ends in half a line.
  bool wants_newline() const noexcept { return newline_first_; }
  /// The size of the file without its filler.
  std::uint64_t size() const noexcept { return end_; }
  /// After cut(), another writer has appended.
  void goes_on_at(std::uint64_t size, bool newline_first) noexcept;

  static constexpr std::size_t kLeast = 8;  ///< bytes of a filler line, "0 0 ..." and its newline

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);
  /// Filler lines are joined this long before an entry reaches the newline between them: a reader
  /// that has seen that newline must still find the start of a line after it.
  static constexpr std::size_t kAhead = 256;

  char* at(std::uint64_t offset) const noexcept { return window_ + (offset - window_begin_); }
  int make_room(std::size_t size) noexcept;
  void join_next_line() noexcept;
  void join_pages(std::uint64_t target) noexcept;
  int grow(std::uint64_t size) noexcept;
  int reserve(std::uint64_t target) noexcept;
  int extend(std::uint64_t target) noexcept;
  int fill(std::uint64_t target) noexcept;
  int map_up_to(std::uint64_t target) noexcept;
  void unmap() noexcept;
  [[gnu::cold]] int lose() noexcept;
  void drop_descriptor() noexcept;
  bool is_size(std::uint64_t size) const noexcept;

  static void store(char* word, std::uint64_t value) noexcept {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word))
        .store(value, std::memory_order_release);
  }
  static std::uint64_t with(std::uint64_t word, std::size_t position,
                            std::string_view bytes) noexcept {
    std::memcpy(reinterpret_cast<char*>(&word) + position, bytes.data(), bytes.size());
    return word;
  }
  static std::uint64_t load(const char* word) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, word, sizeof value);
    return value;
  }

  /// Turns the front of the current filler line into `line`, and the rest into a filler line.
  ///
  /// Only aligned words are stored atomically on every processor. If the word in which the line
  /// begins has no space for all of kFillerHead, the head is written with three stores. Each of
  /// them leaves a symbol of size 0 at an address below 1 MiB.
  void publish(std::string_view line) noexcept {
    char* const begin = at(end_);
    const std::size_t skipped = end_ % kWord;
    const std::size_t first = kWord - skipped;  // bytes of the line in its first word
    char* const word = begin - skipped;
    const bool whole_head = first >= kFillerHead.size();
    const std::size_t head = whole_head ? kFillerHead.size() : first + kFillerHead.size();
    std::memcpy(begin + line.size(), kFillerHead.data(), kFillerHead.size());
    std::atomic_thread_fence(std::memory_order_release);  // before the newline
    if (line.size() > head) [[likely]]
      std::memcpy(begin + head, line.data() + head, line.size() - head);
    const std::uint64_t front = with(load(word), skipped, {line.data(), first});
    if (whole_head) return store(word, front);
    // First the next word holds a complete filler head, so that the line stays a symbol of size 0
    // while its first bytes appear before that head; then the rest of the line replaces the head.
    const std::uint64_t next = load(word + kWord);
    store(word + kWord, with(next, 0, kFillerHead));
    store(word, front);
    store(word + kWord, with(next, 0, {line.data() + first, kFillerHead.size()}));
  }

  Descriptor fd_;
  FileNumber file_;
  char* window_ = nullptr;
  GuardedRange range_;  // the window
  std::uint64_t window_begin_ = 0;
  std::uint64_t window_end_ = 0;
  std::uint64_t end_ = 0;       // end of the entries; the current filler line begins here
  std::uint64_t line_end_ = 0;  // after the newline of that filler line
  std::uint64_t file_end_ = 0;
  std::uint64_t reserved_ = 0;  // disk space is reserved up to here; 0: none
  bool newline_first_ = false;  // the file ends in half a line
};

/// The size of a file of `size` bytes without the filler at its end.
std::uint64_t size_without_filler(int fd, std::uint64_t size) noexcept;

}  // namespace perfmap
