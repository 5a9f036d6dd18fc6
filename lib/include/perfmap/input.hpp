// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/types.hpp"

struct stat;

namespace perfmap {

/// What the first bytes of a stream say about the rest.
enum class StreamStart : std::uint8_t {
  accepted,   ///< it is what is wanted
  undecided,  ///< more of it is needed
};
/// Looks at the first bytes of a stream. An error refuses the stream: the rest is not read. Is
/// called again with more bytes from the beginning, each time about twice as many, while it returns
/// undecided. May keep what it knows of the bytes before.
using StreamCheck = std::function<Result<StreamStart>(std::string_view begin)>;

/// Which files to trust when opening. The default is for paths that a user typed: links are
/// followed, FIFOs and devices are read. Paths that were found need the strict form, because anyone
/// can write to /tmp, and the reader is often root.
struct OpenPolicy {
  bool follow_link = true;  ///< false: a symbolic link as last component is refused
  /// true: FIFOs, devices, sockets, and files of procfs, sysfs and other file systems that show the
  /// kernel's state are refused, unopened
  bool regular_only = false;
  /// true: too_large for regular files of more than 64 GiB, and for files of more than 1 GiB that
  /// are mostly holes: such a file is slow to read, and costs nothing to create.
  bool bounded = false;
  std::vector<uid_t> owners = {};  ///< if not empty, a file with another owner is refused
  /// true: a regular file with several names (hard links) is refused. Where the kernel does not
  /// protect hard links, any user may give a file of another user a name in /tmp.
  bool one_name = false;
  /// false: no descriptor stays open. For files that are not read line by line.
  bool keep_descriptor = true;
  /// limit for streams, which are inputs without a size of their own
  std::uint64_t max_stream_bytes = std::uint64_t{1} << 30;
  /// Refuses streams by their first bytes; borrowed while the input is opened. nullptr: any bytes
  /// are accepted.
  const StreamCheck* check_start = nullptr;
};

/// Applies the limits of a policy to a stream while it is read: a device or a pipe may have no end.
class PERFMAP_API StreamLimits {
 public:
  /// A stream that is undecided after so many bytes is refused.
  static constexpr std::uint64_t kMaxUndecided = std::uint64_t{16} << 20;

  StreamLimits(const OpenPolicy& policy, std::string name);
  /// Takes all bytes so far; call it after each read. Fails with too_large, or as the check does.
  Result<void> look_at(std::string_view so_far);

 private:
  StreamCheck check_;  // empty: accepted
  std::uint64_t max_bytes_;
  std::string name_;
  std::uint64_t next_look_ = 4096;
};

/// The result of stat(2) for a file; for an input, at the time it was opened.
struct FileFacts {
  bool is_file = false;   ///< false for text, a pipe or a device; then the rest is 0
  bool was_link = false;  ///< the path's last component is a symbolic link
  bool is_regular = false;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
};

PERFMAP_API FileFacts facts_of(const struct stat& status) noexcept;

/// The result of refresh().
enum class Growth : std::uint8_t {
  unchanged,
  appended,  ///< text() is longer; committed bytes are unchanged, at the same offsets
  replaced,  ///< another file, a shorter one, or other bytes: all offsets are invalid
};

/// The bytes of an input: a regular file is mapped, anything else (a stream) is read to its end, if
/// its first bytes are accepted.
///
/// The descriptor of a large file stays open until its lines have been read once; only a few files
/// at a time keep one.
///
/// Copies share the bytes. Views into text() are valid until the last copy is destroyed or
/// refreshed. If another process truncates a mapped file, access raises SIGBUS, as for every
/// mapping; TruncationGuard makes such bytes zero. Several threads may use const members.
class PERFMAP_API Input {
 public:
  /// O(1) for a regular file, whose pages are read on access. Fails with io, not_found, refused
  /// (policy), too_large (a stream) or unsupported (a directory).
  static Result<Input> open(const std::string& path, const OpenPolicy& policy = {});
  /// As open(), with the directory `root_fd` as /: no link leads out of it.
  static Result<Input> open_below(int root_fd, const std::string& path, std::string name,
                                  const OpenPolicy& policy);
  /// Reads the descriptor, from its present position if it has no size. Does not close it.
  static Result<Input> from_descriptor(int fd, std::string name, const OpenPolicy& policy = {});
  static Input from_text(std::string text, std::string name);

  std::string_view text() const noexcept { return text_; }
  /// The path as given, or "-".
  const std::string& name() const noexcept { return name_; }
  void rename(std::string name) { name_ = std::move(name); }
  const FileFacts& facts() const noexcept { return facts_; }

  /// Declares the first `size` bytes of text() final, until the next refresh(). The bytes after
  /// them may still change: refresh() reports such changes as appended.
  void commit(std::size_t size);

  /// Checks the path again and reads what was appended. Only for inputs from open(), or after
  /// reopen_with(); all others are unchanged. On replaced, text() is the new file's. Earlier views
  /// are invalid, unless the result is unchanged. O(1), and O(size) page-table work in the kernel.
  Result<Growth> refresh();

  /// From now on refresh() calls `open` instead of opening the path: for files that must be located
  /// again, such as those below another process's root.
  void reopen_with(std::function<Result<Input>()> open) { open_again_ = std::move(open); }

  /// Whether a TruncationGuard had to replace bytes of this input.
  bool was_truncated() const noexcept;

 private:
  struct Storage;
  friend class ChunkReader;
  int take_descriptor() const noexcept;
  bool is_same_file(const FileFacts& now) const noexcept;
  bool is_unchanged(const FileFacts& now) const noexcept;
  bool continues(std::string_view now) const noexcept;
  Result<Input> take_again() const;
  static Result<Input> take(int fd, std::string name, const OpenPolicy& policy, bool by_path);
  std::shared_ptr<Storage> storage_;
  std::string_view text_;
  std::size_t settled_size_ = 0;
  std::string settled_begin_;  // as it was, to distinguish an appended file from a rewritten one
  std::string settled_end_;
  std::string unsettled_;  // the beginning of the bytes after settled_size_
  std::string name_;
  FileFacts facts_;
  OpenPolicy policy_;
  bool by_path_ = false;
  std::function<Result<Input>()> open_again_;
};

/// While a guard exists, reading a mapped Input whose file was truncated yields zero bytes instead
/// of SIGBUS. Installs a process-wide SIGBUS handler, which passes on signals for other memory, and
/// restores the former handler at the end: for programs, and for libraries whose host agrees.
class PERFMAP_API TruncationGuard {
 public:
  TruncationGuard() noexcept;
  ~TruncationGuard();
  TruncationGuard(const TruncationGuard&) = delete;
  TruncationGuard& operator=(const TruncationGuard&) = delete;
};

/// Reads an input that can be read only once, such as a pipe, in blocks of whole lines: for inputs
/// too long to keep in memory. A line of more than kMaxLine bytes is truncated. A line of more than
/// kEndlessLine bytes is an error, because it is not text, and a device such as /dev/zero has no
/// end. One thread at a time.
class PERFMAP_API LineBlocks {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;
  static constexpr std::size_t kEndlessLine = std::size_t{1} << 30;

  /// Fails like Input::open().
  static Result<LineBlocks> open(const std::string& path);
  /// Reads the descriptor from its present position. Does not close it.
  static LineBlocks of_descriptor(int fd, std::string name);
  LineBlocks(LineBlocks&&) noexcept;
  LineBlocks& operator=(LineBlocks&&) noexcept;
  ~LineBlocks();

  /// The next block; empty at the end. Only the last line of the input may lack its newline. Valid
  /// until the next call. Fails with too_large for an endless line.
  Result<std::string_view> next();

  const std::string& name() const noexcept;

 private:
  struct State;
  explicit LineBlocks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The kind of a file with names. Detected from its content, never from its file name.
enum class SourceKind : std::uint8_t {
  perf_map,
  json,       ///< perfmap's own; the first byte that is not white space is `{`
  jitdump,    ///< magic in either byte order
  perf_data,  ///< PERFILE2
  pypylog,    ///< a line opens or closes a section, "[hex] {category"; no line before it is a map's
  image_list,  ///< .NET's perfinfo-PID.map: ImageLoad;PATH;GUID;BASE; for each image, and no names
  gzip,
  xz,
  zstd,
  bzip2,
};

/// Detects the kind from the first 4096 of these bytes. Anything else is a perf map, also an empty
/// input.
PERFMAP_API SourceKind detect_kind(std::string_view bytes) noexcept;

/// The byte order of a jitdump with a damaged magic number: the rest of its header is valid, and a
/// record follows it. Nothing for anything else.
PERFMAP_API std::optional<std::endian> order_without_magic(std::string_view bytes) noexcept;

/// Whether this is a jitdump with one wrong byte in its magic number, which detect_kind() reports
/// as a perf map.
PERFMAP_API bool is_damaged_jitdump(std::string_view bytes) noexcept;

/// Whether this is not text, which detect_kind() also reports as a perf map: many of the first 4096
/// bytes are control characters, and none of their lines is a map's. Leading zeros do not count: a
/// file has them if it was truncated while its producer wrote it.
PERFMAP_API bool is_binary(std::string_view bytes) noexcept;

/// "perf map", "jitdump", … for messages.
PERFMAP_API std::string_view to_string(SourceKind kind) noexcept;

/// "perf-map", "jitdump", "pypylog", "json": the kinds that a user may specify.
PERFMAP_API std::optional<SourceKind> parse_kind(std::string_view name) noexcept;

}  // namespace perfmap
