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

/// Whom to believe when a file is opened. The default opens what a user typed: links are followed,
/// FIFOs and devices are read. A path that was found rather than typed wants the stricter form:
/// /tmp belongs to everybody, and the reader is often root.
struct OpenPolicy {
  bool follow_link = true;    ///< false: a symbolic link as last component is refused
  bool regular_only = false;  ///< true: FIFOs, devices and sockets are refused, unopened
  /// true: too_large for regular files of more than 64 GiB, and for those of more than 1 GiB that
  /// are mostly holes: they cost time to read, and nothing to make.
  bool bounded = false;
  std::vector<uid_t> owners = {};  ///< not empty: a file of anybody else is refused
  /// false: no descriptor stays open. For files that are not gone over line by line.
  bool keep_descriptor = true;
  std::uint64_t max_stream_bytes = std::uint64_t{1} << 30;  ///< from what has no size of its own
};

/// What stat(2) said about a file; about an input, when it was opened.
struct FileFacts {
  bool is_file = false;   ///< false: text, a pipe, a device; then the rest is 0
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

/// What refresh() found.
enum class Growth : std::uint8_t {
  unchanged,
  appended,  ///< text() is longer; what was settled is as it was, at the same offsets
  replaced,  ///< another file, a shorter one, or other bytes: forget all offsets
};

/// The bytes of an input: a regular file is mapped, anything else is read to its end.
///
/// A large file's descriptor stays open until its lines have been gone over once, for a few files
/// at a time.
///
/// Copies share the bytes. Views into text() live until the last copy is gone or refreshed.
/// A file that another process truncates while it is mapped raises SIGBUS on access, as for every
/// mapping; TruncationGuard turns that into zero bytes. Const members may be used from several
/// threads.
class PERFMAP_API Input {
 public:
  /// O(1) for a regular file, whose pages are read on access. Fails with io, not_found, refused
  /// (policy), too_large (a stream) or unsupported (a directory).
  static Result<Input> open(const std::string& path, const OpenPolicy& policy = {});
  /// As open(), below the directory `root_fd` as if it were /: no link leads out of it.
  static Result<Input> open_below(int root_fd, const std::string& path, std::string name,
                                  const OpenPolicy& policy);
  /// Takes what the descriptor has, from its present position if it has no size. Does not close it.
  static Result<Input> from_descriptor(int fd, std::string name, const OpenPolicy& policy = {});
  static Input from_text(std::string text, std::string name);

  std::string_view text() const noexcept { return text_; }
  /// The path as given, or "-".
  const std::string& name() const noexcept { return name_; }
  void rename(std::string name) { name_ = std::move(name); }
  const FileFacts& facts() const noexcept { return facts_; }

  /// Only the first `size` bytes of text() are settled, as they are now: what stands behind may
  /// still change, which refresh() calls appended, too. Until the next refresh().
  void commit(std::size_t size);

  /// Looks at the path again and takes in what was appended. Only for files that open() opened, or
  /// for which reopen_with() was called; everything else is unchanged. On replaced, text() is
  /// the new file's. Views taken before are invalid afterwards unless it answers unchanged. O(1),
  /// and O(size) page-table work in the kernel.
  Result<Growth> refresh();

  /// From now on refresh() takes in what `open` gives instead of looking at the path: for files
  /// that have to be found anew, such as those below another process's root.
  void reopen_with(std::function<Result<Input>()> open) { open_again_ = std::move(open); }

  /// True when a TruncationGuard had to stand in for bytes of this input.
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
  std::string settled_begin_;  // as it was, to tell an appended file from a rewritten one
  std::string settled_end_;
  std::string unsettled_;  // the beginning of the rest
  std::string name_;
  FileFacts facts_;
  OpenPolicy policy_;
  bool by_path_ = false;
  std::function<Result<Input>()> open_again_;
};

/// While one is alive, reading a mapped Input whose file was truncated meanwhile yields zero bytes
/// instead of SIGBUS. Installs a process-wide SIGBUS handler, which passes on what is not ours, and
/// restores the former one at the end: for programs, or libraries whose host agrees.
class PERFMAP_API TruncationGuard {
 public:
  TruncationGuard() noexcept;
  ~TruncationGuard();
  TruncationGuard(const TruncationGuard&) = delete;
  TruncationGuard& operator=(const TruncationGuard&) = delete;
};

/// What can be read only once, such as a pipe, in blocks of whole lines: for what is too long to be
/// kept. A line of more than kMaxLine bytes loses its end; one of more than kEndlessLine is no
/// text, and a device such as /dev/zero has no other end. One thread at a time.
class PERFMAP_API LineBlocks {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;
  static constexpr std::size_t kEndlessLine = std::size_t{1} << 30;

  /// Fails as Input::open() does.
  static Result<LineBlocks> open(const std::string& path);
  /// Reads what the descriptor has from its present position on. Does not close it.
  static LineBlocks of_descriptor(int fd, std::string name);
  LineBlocks(LineBlocks&&) noexcept;
  LineBlocks& operator=(LineBlocks&&) noexcept;
  ~LineBlocks();

  /// The next block, which is empty at the end; only the last line of all may lack its newline.
  /// Valid until the next call. Fails with too_large at an endless line.
  Result<std::string_view> next();

  const std::string& name() const noexcept;

 private:
  struct State;
  explicit LineBlocks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What kind of file names come from. Told by content, never by a file's name.
enum class SourceKind : std::uint8_t {
  perf_map,
  json,       ///< ours: the first byte that is not white space is `{`
  jitdump,    ///< magic in either byte order
  perf_data,  ///< PERFILE2
  pypylog,    ///< a line opens or closes a section, "[hex] {category"; none before is a map's
  gzip,
  xz,
  zstd,
  bzip2,
};

/// The kind of these bytes, of which the first 4096 are looked at. What is nothing else is a perf
/// map, and so is nothing at all.
PERFMAP_API SourceKind detect_kind(std::string_view bytes) noexcept;

/// The byte order of what is a jitdump but for its magic number: the rest of its header makes
/// sense, and a record follows it. Nothing for anything else.
PERFMAP_API std::optional<std::endian> order_without_magic(std::string_view bytes) noexcept;

/// Whether this is a jitdump of whose magic number one byte is wrong, which detect_kind() takes for
/// a perf map.
PERFMAP_API bool is_damaged_jitdump(std::string_view bytes) noexcept;

/// Whether this is no text, of which detect_kind() says perf map, too: many of the first 4096 bytes
/// are control characters, and none of their lines is one of a map. Zeros at the beginning, as a
/// file has that was truncated under its writer, do not count.
PERFMAP_API bool is_binary(std::string_view bytes) noexcept;

/// "perf map", "jitdump", … for messages.
PERFMAP_API std::string_view to_string(SourceKind kind) noexcept;

/// "perf-map", "jitdump", "pypylog", "json": the kinds that a user may insist on.
PERFMAP_API std::optional<SourceKind> parse_kind(std::string_view name) noexcept;

}  // namespace perfmap
