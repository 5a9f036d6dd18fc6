#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// What becomes of a name that readers would trip over; see escape_map_name().
enum class NamePolicy : std::uint8_t {
  escape,  ///< it is written as escape_map_name() says
  refuse,  ///< nothing is written, the call fails with EILSEQ
};

struct WriterOptions {
  NamePolicy names = NamePolicy::escape;
  /// True for the map of a process in /tmp: links and everything but regular files are refused.
  bool own_map = false;
  /// 0: an entry whose write() returned is in the file, even if the process is killed next.
  /// Otherwise entries are kept until so many bytes are there, and written at once.
  std::size_t buffer_bytes = 0;
  /// Buffered: what is older than this is written at the next write(). 0: no such limit.
  std::uint64_t flush_after_ns = 0;
  /// The file grows no further than this, counting what it held when it was opened and what this
  /// writer added: a write() or copy() that would fails with EFBIG. 0: no limit.
  std::uint64_t max_bytes = 0;
  /// Called with its context by a write() at max_bytes, in its thread: not 0 says that there is
  /// room now, and the entry is tried once more. It may use the writer, say to close the process's
  /// own map and to move it away: the next write opens a new one. Other threads' writes fail
  /// meanwhile. Must not throw. After 0 it is not called again until the map is opened anew.
  int (*on_full)(void* context) = nullptr;
  void* on_full_context = nullptr;
  /// Entries are stored into a mapping of the file's end instead of being written with write(2): an
  /// entry whose write() returned is in the file, even if the process is killed next, for the price
  /// of a copy in memory. buffer_bytes counts as 0.
  ///
  /// Until it is closed the file ends in at most 64 KiB of filler, which max_bytes does not count:
  /// lines of "0 0 " and dots, at most 2 KiB each unless a longer entry is on its way, which
  /// readers take for symbols without size at address 0. close() cuts them off; of a writer that
  /// was killed they stay, until the next mapped writer opens the file. A map that is on its way
  /// has whole lines at any time.
  ///
  /// Only for files that nobody else writes to, whatever they promise:
  ///  * open() fails with EBUSY where a process, as far as /proc shows, has the file open for
  ///    writing, or where a writer of this library has locked it. What comes later and does not
  ///    look for locks is seen when the filler is used up: entries then go on with write(2), and
  ///    filler is left in the middle of the file.
  ///  * Whoever truncates the file kills this process with SIGBUS at the next write(). A reader
  ///    that maps the file, and looks at its filler while close() cuts it off, is in the same
  ///    danger: see TruncationGuard.
  ///  * After fork() the writer is closed in the child: EBADF. (A process's own map goes on
  ///    as its fork policy says; where it is in use, as by a child that has not let go of it, it is
  ///    written with write(2) instead.)
  ///
  /// Room on the disk is reserved beforehand, so that a full one is ENOSPC from write(), never
  /// SIGBUS. Where that cannot be had, entries are written with write(2): for what is no regular
  /// file, and on all file systems but ext2 to ext4, XFS and tmpfs.
  bool mapped = false;
};

/// Appends entries to a perf map: one write(2) of one whole line on a descriptor opened for
/// appending, so that several threads and several processes may share a file. Never truncates.
///
/// May be used from several threads at once. After fork() the child may go on: entries that the
/// parent had buffered stay the parent's.
///
/// A failed write is reported and leaves nothing behind, or, where another process has written
/// meanwhile, at most a line that was cut short. A failed flush keeps what it could not write.
/// Where the file size limit of the process is passed (EFBIG) the kernel also sends SIGXFSZ, as for
/// every write.
class PERFMAP_API MapWriter {
 public:
  static Result<MapWriter> open(const std::string& path, const WriterOptions& options = {});
  /// Writes to a descriptor, such as 1, which the caller keeps and may close at once. Where that is
  /// no pipe or terminal and not opened for appending, entries go where its position is.
  static Result<MapWriter> to_descriptor(int fd, std::string name,
                                         const WriterOptions& options = {});
  MapWriter(MapWriter&&) noexcept;
  MapWriter& operator=(MapWriter&&) noexcept;
  /// close(), with nobody left to tell of a failure.
  ~MapWriter();

  /// O(name). Allocates nothing for names that are written as they are.
  Result<void> write(Address start, std::uint64_t size, std::string_view name);
  /// Appends all of the map at `path` as it is now, and a newline if it ends without one. This very
  /// file, and what is no regular file, are invalid_argument.
  Result<void> copy(const std::string& path);
  /// Writes what is buffered.
  Result<void> flush();
  Result<void> close();

 private:
  struct State;
  explicit MapWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<MapWriter> make(const std::string& name, const WriterOptions& options, Open open);
  Result<void> result(std::string_view what, int sys_errno) const;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
