#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/fork_policy.hpp"
#include "perfmap/map_start.hpp"
#include "perfmap/types.hpp"
#include "perfmap/writer.hpp"

namespace perfmap {

/// What becomes of entries that an earlier process of the same pid left in a process's own map.
enum class StaleMap : std::uint8_t {
  /// They go when the map is opened: if the file is ours, was last written more than a second
  /// before this process began, and no writer of this library has it open (they hold a lock, see
  /// F_OFD_SETLK). Else they stay, and MapStart says why.
  empty,
  keep,  ///< they stay
};

struct ProcessMapOptions {
  std::string directory = "/tmp";
  ForkPolicy fork = ForkPolicy::fresh;
  StaleMap stale = StaleMap::empty;
  /// own_map is always true here.
  WriterOptions writer = {};
};

/// The calling process's own map, DIRECTORY/perf-PID.map: what CPython documents for
/// PyUnstable_PerfMapState_Init, PyUnstable_WritePerfMapEntry, PyUnstable_CopyPerfMapFile and
/// PyUnstable_PerfMapState_Fini. There is one per process; all functions may be called from several
/// threads, answer 0 or a negative code as said there, and set errno with it.
///
/// None is a cancellation point, or may be called from a signal handler or in the child of
/// vfork(2). Handlers of pthread_atfork(3) may use it, but for the parent's and the preparing ones
/// that were registered before this library was loaded. fork(2) waits up to a tenth of a second for
/// a write that hangs, say on a full pipe, then goes on; such a writer is closed in the child.
///
/// A child may use it however it was made, at whatever moment, by fork(2), vfork(2) with exec(2),
/// or clone(2) without handlers: see ForkPolicy. In a child of a bare clone(2) of a process with
/// threads the lock of malloc() may be taken for ever; nothing here calls that there, but for names
/// that have to be escaped, copy(), and maps that are mapped.
///
/// A library built without perf maps does nothing here, successfully.
class PERFMAP_API ProcessMap {
 public:
  /// Before the first init(), or after fini(): else -1 and EBUSY; ENAMETOOLONG for a directory of
  /// 4000 bytes and more. A child counts anew, but one that inherits has its map open.
  static int configure(const ProcessMapOptions& options) noexcept;
  /// Changes that one option, for children to come, at any time.
  static int set_fork_policy(ForkPolicy policy) noexcept;
  /// Opens the map unless it is open. -1: it cannot be opened, or the parent's entries cannot be
  /// inherited: of a parent whose map could only be opened for writing, EBADF; -2: no fork handler.
  static int init() noexcept;
  /// What the map that is open began with; `none` where none is.
  static MapStart start() noexcept;
  /// Opens the map first where needed. -1: nothing of this entry is in the file; errno is EILSEQ
  /// for a name that the policy refuses, EFBIG at the size cap, else the system's.
  static int write(Address start, std::uint64_t size, std::string_view name) noexcept;
  /// Appends the map at `path`, another process's, as it is now. -1 and EINVAL for our own map,
  /// what is no regular file, and nullptr; EISDIR for a directory; ELOOP for a link.
  static int copy(const char* path) noexcept;
  static int flush() noexcept;
  /// The policy in force: what was configured last. It is for children yet to come.
  static ForkPolicy fork_policy() noexcept;
  /// What became of this process's own map when it was forked: `inherit` where the map begins with
  /// its parent's entries, or will as soon as that can be done; `off` where it writes nothing until
  /// configure(). `fresh` also in a process that was not forked since it first used the map.
  static ForkPolicy began_as() noexcept;
  /// Waits for writes in flight, writes what is buffered, closes. Any number of times. Done at
  /// exit, too; who writes later still, writes without a buffer.
  static int fini() noexcept;
};

}  // namespace perfmap
