#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/writer.hpp"

namespace perfmap {

/// What a forked child does with a map of its own.
enum class ForkPolicy : std::uint8_t {
  fresh,    ///< CPython's default: the child's map starts empty and is opened on its first write
  copy,     ///< the child's map starts as a copy of what the parent's has at the child's first use
  disable,  ///< children of the process that configured this write nothing, successfully
};

struct ProcessMapOptions {
  std::string directory = "/tmp";
  ForkPolicy fork = ForkPolicy::fresh;
  /// own_map is always true here.
  WriterOptions writer = {};
};

/// The calling process's own map, DIRECTORY/perf-PID.map: what CPython documents for
/// PyUnstable_PerfMapState_Init, PyUnstable_WritePerfMapEntry, PyUnstable_CopyPerfMapFile and
/// PyUnstable_PerfMapState_Fini. There is one per process; all functions may be called from several
/// threads, answer 0 or a negative code as said there, and set errno with it.
///
/// A library built without perf maps does nothing here, successfully.
class PERFMAP_API ProcessMap {
 public:
  /// Before the first init(), or after fini(): else -1 and EBUSY. A child counts anew.
  static int configure(const ProcessMapOptions& options) noexcept;
  /// Opens the map unless it is open. -1: it cannot be opened, or a child's first time, its
  /// parent's cannot be copied; -2: no lock or fork handler.
  static int init() noexcept;
  /// Opens the map first where needed. -1: nothing of this entry is in the file; errno is EILSEQ
  /// for a name that the policy refuses, EFBIG at the size cap, else the system's.
  static int write(Address start, std::uint64_t size, std::string_view name) noexcept;
  /// Appends the map at `path`, another process's, as it is now. -1 and EINVAL for our own map,
  /// what is no regular file, and nullptr; ELOOP for a link.
  static int copy(const char* path) noexcept;
  static int flush() noexcept;
  /// Changes that one option at any time. 0, or as init().
  static int set_fork_policy(ForkPolicy policy) noexcept;
  /// The policy in force: what was configured last.
  static ForkPolicy fork_policy() noexcept;
  /// Waits for writes in flight, writes what is buffered, closes. Any number of times. Done at
  /// exit, too; who writes later still, writes without a buffer.
  static int fini() noexcept;
};

}  // namespace perfmap
