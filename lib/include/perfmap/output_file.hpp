#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The output of a command: large writes, and a file that changes all at once or not at all.
///
/// A regular or new file is written under a temporary name in the same directory and renamed by
/// commit(); without commit() nothing changes. If the path is a symbolic link, its target is
/// replaced. A device or FIFO is written in place. One thread at a time.
class PERFMAP_API OutputFile {
 public:
  static Result<OutputFile> replace(const std::string& path);
  /// Replaces the regular file that `input` was opened from. Fails with refused if its path now
  /// leads to another file: in /tmp others may put a link there, and we may be root.
  static Result<OutputFile> replace(const Input& input);
  /// Replaces the directory entry itself, even if it is a link or special file, by a new file of
  /// the caller: for names that the user did not choose, in a directory where others may create
  /// files.
  static Result<OutputFile> replace_itself(const std::string& path);
  /// Writes to a descriptor that the caller keeps open, such as 1.
  static OutputFile to_descriptor(int fd, std::string name);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// From now on a terminal gets bytes as append_visible() shows them, except newlines; any other
  /// target gets them unchanged. For output with names from inputs.
  void protect_terminal();

  /// Makes the new file readable and writable by its owner only: for copies of process memory.
  void make_private() noexcept;

  /// Buffered. After a failure further bytes are ignored, and flush() and commit() report it.
  void write(std::string_view bytes);
  /// Room for at least `max` bytes at the end of the buffer, for a formatter that knows its bound;
  /// wrote() takes the number of bytes used. `max` may not exceed kRoom.
  static constexpr std::size_t kRoom = std::size_t{64} << 10;
  char* room(std::size_t max);
  void wrote(std::size_t count) noexcept { used_ += count; }
  bool failed() const noexcept { return errno_ != 0; }
  /// Whether the output is a terminal.
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
  std::string temporary_path_;  // empty while the file has no name, and after commit()
  std::string buffer_;
  std::size_t used_ = 0;
};

/// The ID of a process that has the file open for writing: if the file were replaced, that process
/// would go on writing to the deleted one. Searches /proc/*/fd, as far as permitted: O(descriptors
/// of all processes). Nothing if there is none except process `except`.
PERFMAP_API std::optional<int> find_writer(const FileFacts& file, const std::string& proc = "/proc",
                                           int except = 0);

/// Why a map must not be rewritten in place, in one line; nothing if it may be. It is standard
/// input or not a regular file; or, unless `force`, it lies below the root of a process, or a live
/// process has it open for writing.
PERFMAP_API std::optional<std::string> objection_to_rewriting(const Input& input, bool force);

/// Removes the write permission of group and others (chmod go-w), if the path still leads to the
/// file that was read, so that the mode of another file cannot be changed.
PERFMAP_API Result<void> take_write_rights(const Input& input);

}  // namespace perfmap
