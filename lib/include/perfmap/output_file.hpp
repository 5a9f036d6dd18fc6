// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The place of a file that is about to be written: its directory, which stays open, and its name
/// there.
///
/// Other users may put links and files into a directory such as /tmp. So in a directory with the
/// sticky bit that its group or others may write to, a link is followed only if it belongs to us or
/// to the owner of the directory, and a file, FIFO or device is written under the same condition.
/// This is the kernel's rule for fs.protected_symlinks, protected_regular and protected_fifos at
/// level 2; here it holds always, and for each component of the path.
///
/// In other directories, too, a link of another user in the place of the file is followed only to a
/// file of that user: else the owner of a directory could have any file of ours overwritten. One
/// thread at a time.
class PERFMAP_API OutputPlace {
 public:
  enum class Last : std::uint8_t { followed, kept };

  /// Follows links, also the last one, unless it is `kept`; the target of the last link need not
  /// exist. Fails with refused for a link that may have been planted, and with not_found or io.
  /// O(n) for n components and links.
  static Result<OutputPlace> find(const std::string& path, Last last = Last::followed);
  OutputPlace(OutputPlace&&) noexcept;
  OutputPlace& operator=(OutputPlace&&) noexcept;
  ~OutputPlace();

  /// An O_PATH descriptor, open as long as this object.
  int directory() const noexcept;
  /// Of the file in that directory.
  const std::string& name() const noexcept;
  /// What the name was when it was found; null if there was no such file.
  const struct stat* existing() const noexcept;
  /// Fails with refused if the existing file may have been planted.
  Result<void> check_existing() const;
  /// Opens an existing file, FIFO or device for writing, after check_existing().
  Result<int> open_existing() const;
  /// A path that leads to the checked file as long as this object lives, whatever is done to its
  /// directory meanwhile; for a writer that opens a path. Creates a missing file with mode 0600.
  /// The path as given if there is no /proc.
  Result<std::string> path_for_appending();

 private:
  struct State;
  explicit OutputPlace(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// The output of a command: large writes, and a file that changes all at once or not at all.
///
/// A regular or new file is written under a temporary name in the same directory and renamed by
/// commit(); without commit() nothing changes. If the path is a symbolic link, its target is
/// replaced. A device or FIFO is written in place. OutputPlace says which links are followed and
/// which files are replaced. One thread at a time.
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
  /// The path, or the name of the descriptor, for messages.
  const std::string& name() const noexcept { return name_; }

  Result<void> flush();
  Result<void> commit();

 private:
  OutputFile() = default;
  static Result<OutputFile> replace(const std::string& path, const FileFacts* only);
  int create(mode_t mode);
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
  std::optional<OutputPlace> place_;  // nothing: written in place
  std::string temporary_;  // name beside it; empty while the file has none, and after commit()
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
};

/// The ID of a process that has the file open for writing: if the file were replaced, that process
/// would go on writing to the deleted one. Searches /proc/*/fd, as far as permitted: O(descriptors
/// of all processes). Nothing if there is none except process `except`.
PERFMAP_API std::optional<int> find_writer(const FileFacts& file, const std::string& proc = "/proc",
                                           int except = 0);

/// The same for many files, with one search of /proc/*/fd: at the first call of find(). A file that
/// a process opens after that has no writer; one that it has closed has none, either. 24 bytes for
/// each descriptor of a regular file. One thread at a time.
class PERFMAP_API FileWriters {
 public:
  explicit FileWriters(std::string proc = "/proc");

  /// The ID of a process that has this regular file open for writing. O(log descriptors).
  std::optional<int> find(const FileFacts& file);

 private:
  struct OpenFile {
    std::uint64_t device;
    std::uint64_t inode;
    int pid;
    int fd;
    auto operator<=>(const OpenFile&) const = default;
  };
  void read();

  std::string proc_;
  bool is_read_ = false;
  std::vector<OpenFile> open_;  // sorted
};

/// Why a map must not be rewritten in place, in one line; nothing if it may be. It is standard
/// input or not a regular file; or, unless `force`, it lies below the root of a process, or a live
/// process has it open for writing.
PERFMAP_API std::optional<std::string> objection_to_rewriting(const Input& input, bool force);

/// Removes the write permission of group and others (chmod go-w), if the path still leads to the
/// file that was read, so that the mode of another file cannot be changed.
PERFMAP_API Result<void> take_write_rights(const Input& input);

}  // namespace perfmap
