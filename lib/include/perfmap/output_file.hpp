#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Where a command's answer goes: large writes, and a file that changes all at once or not at all.
///
/// A regular file (or none yet) is written beside its final place and renamed by commit(); without
/// commit() nothing has changed. Of a symbolic link the target is replaced. A device or FIFO is
/// written in place. One thread at a time.
class PERFMAP_API OutputFile {
 public:
  static Result<OutputFile> replace(const std::string& path);
  /// Replaces the regular file that `input` was opened from. Fails with refused where its path
  /// leads to another file by now: in /tmp others may put a link there, and we may be root.
  static Result<OutputFile> replace(const Input& input);
  /// Replaces whatever has that name, links and special files too, by a new file of the caller's:
  /// for names that the user did not choose, in a directory where others may put something first.
  static Result<OutputFile> replace_itself(const std::string& path);
  /// Writes to a descriptor that the caller keeps open, such as 1.
  static OutputFile to_descriptor(int fd, std::string name);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// From here on a terminal gets bytes as append_visible() shows them, but for newlines; any other
  /// target gets them as they are. For output that holds names as they were read.
  void protect_terminal();

  /// The new file is its owner's alone: for copies of what processes had in memory.
  void make_private() noexcept;

  /// Buffered. A failure sticks, and flush() and commit() report it; further bytes are ignored.
  void write(std::string_view bytes);
  /// Room for at least `most` bytes at the end of the buffer, for a formatter that knows its bound;
  /// wrote() says how many were used. `most` may not exceed kRoom.
  static constexpr std::size_t kRoom = std::size_t{64} << 10;
  char* room(std::size_t max);
  void wrote(std::size_t count) noexcept { used_ += count; }
  bool failed() const noexcept { return errno_ != 0; }
  /// Whether somebody sees the bytes as they come.
  bool is_terminal() const noexcept;

  Result<void> flush();
  Result<void> commit();

 private:
  OutputFile() = default;
  static Result<OutputFile> replace(const std::string& path, const FileFacts* only);
  void drain();
  void drain_lines();
  void send(std::string_view bytes);
  void give_name();
  Error error() const;
  void discard() noexcept;

  int fd_ = -1;
  bool owns_ = false;
  bool shows_ = false;
  int errno_ = 0;
  std::string name_;
  std::string final_path_;      // empty: written in place
  std::string temporary_path_;  // empty while the file has no name, and once committed
  std::string buffer_;
  std::size_t used_ = 0;
};

/// A process that has the file open for writing: it would go on writing into a file without a name
/// if that were replaced. Looks through /proc/*/fd, as far as we may: O(descriptors of all
/// processes). Nothing where nobody is seen but process `except`.
PERFMAP_API std::optional<int> find_writer(const FileFacts& file, const std::string& proc = "/proc",
                                           int except = 0);

/// Why a map must not be rewritten in place, in one line: it is standard input or no regular file,
/// or, unless `force`, it lies in the root of a process, or a live process has it open for writing.
/// Nothing where it may be.
PERFMAP_API std::optional<std::string> objection_to_rewriting(const Input& input, bool force);

/// Takes the right to write a file from its group and everybody (chmod go-w), if its path still
/// leads to the file that was read: nobody can have the mode of another file changed.
PERFMAP_API Result<void> take_write_rights(const Input& input);

}  // namespace perfmap
