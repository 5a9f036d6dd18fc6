#pragma once

#include <cstdint>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/map_start.hpp"

namespace perfmap {

/// A perf map opened for appending. Every function answers 0 or an errno value, allocates nothing
/// and is for one thread at a time; other processes may append to the same file.
class AppendFile {
 public:
  /// For a path that a user typed: links are followed, devices and FIFOs are written. For a map in
  /// /tmp: `own` refuses links and anything but a regular file that has no other name. Created with
  /// mode 0600, closed on exec, never truncated but for what begin_map() says.
  int open(const char* path, bool own, bool empty_stale = false, bool alone = false) noexcept;
  /// A copy of the descriptor, which is written as it is.
  int open(int fd) noexcept;
  bool is_open() const noexcept { return fd_.is_open(); }
  /// Somebody has closed our descriptor, as daemons do with all that they find, and may have opened
  /// something else by its number. close() leaves that alone, and says EBADF.
  bool fd_was_replaced() const noexcept;
  /// The regular file that is open; is(): whether it is that one.
  FileNumber file() const noexcept { return regular_ ? file_ : FileNumber{}; }
  bool is(FileNumber file) const noexcept;
  /// Whether the path does.
  bool leads_to(const char* path) const noexcept;
  /// What was there when it was opened.
  MapStart start() const noexcept { return fd_.is_open() ? start_ : MapStart::none; }
  /// As close(2) says: on some file systems only now a write turns out to have failed.
  int close() noexcept;

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
  int inherit(const char* path, std::uint64_t size, std::string_view more,
              bool empty_stale) noexcept;

  /// For what else writes to this very file.
  int descriptor() const noexcept { return fd_.get(); }
  bool wants_newline() const noexcept { return newline_first_; }
  /// Somebody else has written to it; whether it ends in half a line, they know.
  void resume_at(bool newline_first) noexcept;

  /// Bytes of the file when it was opened, and what was appended since.
  std::uint64_t size() const noexcept { return size_; }
  /// What the file has now, whoever wrote it, and where the last write through this description of
  /// it ended, in whichever process. 0: nobody knows.
  std::uint64_t size_now() const noexcept;
  std::uint64_t position() const noexcept;
  /// Asks how long the file is now: somebody may have cut it. Of no interest for what is no file.
  void restat() noexcept;

 private:
  int take_over(AppendFile& target, int source, std::uint64_t count) noexcept;
  int write_once(std::string_view bytes, std::size_t& written) noexcept;
  int append_behind_newline(std::string_view lines) noexcept;
  int append_slowly(std::string_view lines, ssize_t count) noexcept;
  int why_no_room() const noexcept;
  int append_rest(std::string_view lines, std::size_t written) noexcept;
  int write_all(std::string_view& bytes) noexcept;
  int append_part(std::string_view bytes) noexcept;
  void take_back(std::string_view left) noexcept;
  bool ends_in_newline(const char* path, bool own) const noexcept;
  int copy_bytes(int source, std::uint64_t count) noexcept;

  Descriptor fd_;
  FileNumber file_;
  bool regular_ = false;
  bool newline_first_ = false;
  MapStart start_ = MapStart::none;
  bool in_line_ = false;  // while copying: the file ends in a piece of a line
  std::uint64_t size_ = 0;
};

}  // namespace perfmap
