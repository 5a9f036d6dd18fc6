// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A change of a process's map or dumps. Views live until the visit returns.
struct WatchEvent {
  enum class Kind : std::uint8_t {
    entry,     ///< a line of the map
    load,      ///< a LOAD record: code was loaded
    move,      ///< a MOVE record: code moved from `from` to `range`
    close,     ///< a CLOSE record
    found,     ///< a file that is new
    replaced,  ///< a file that was replaced or rewritten: its entries are reported again
    removed,   ///< a file that is gone; what it had stays valid
    refused,   ///< a file that is not trusted: `name` is the reason
    executed,  ///< the process executes another program
  };

  Kind kind = Kind::entry;
  AddressRange range = {};
  Address from = 0;
  std::string_view name = {};    ///< raw bytes; for a move that of the code, if its LOAD was seen
  std::string_view source = {};  ///< the file
  std::uint64_t line = 0;        ///< for an entry, from 1
  std::uint64_t time = 0;        ///< for a record, as in the dump
  std::uint64_t index = 0;       ///< of a record's code
  std::uint32_t tid = 0;         ///< for a record
  /// The process that the file belongs to, if the watched one was forked from it; 0: its own.
  pid_t inherited_from = 0;
  bool has_ticks = false;  ///< `time` is the processor's counter, not nanoseconds
};

/// "entry", "load" and so on.
PERFMAP_API std::string_view to_string(WatchEvent::Kind kind) noexcept;

struct WatchOptions {
  Roots roots = {};
  bool any_owner = false;  ///< see find_process_map()
  bool new_only = false;   ///< skip what exists when the watch begins
};

struct WatchTotals {
  std::uint64_t entries = 0;  ///< lines, LOADs
  std::uint64_t moves = 0;
  std::uint64_t code_bytes = 0;  ///< of `entries`
  std::uint64_t lost = 0;        ///< malformed lines and damaged records
};

/// Follows the perf map and the jitdumps of a living process: each look reports what was added
/// since the last one. Waits for files that do not exist yet. Files are found as by
/// find_process_map() and find_process_dumps(), and followed at that place even after the process
/// has ended. Files of the processes that it was forked from are followed too, until it execs: see
/// living_parents(). A map has no times: what a parent adds to its map after the fork is also
/// reported.
///
/// A look at unchanged files costs about ten microseconds. The search for files takes at most half
/// a percent of a processor's time.
///
/// One thread at a time. Holds descriptors of the process, its root, and its files' directories.
class PERFMAP_API ProcessWatch {
 public:
  using Visit = std::function<void(const WatchEvent&)>;

  explicit ProcessWatch(ProcSource process, WatchOptions options = {});
  ProcessWatch(ProcessWatch&&) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) noexcept;
  ~ProcessWatch();

  /// Reports what is new. False after the process has ended and everything that it wrote was
  /// reported.
  Result<bool> look(const Visit& visit);

  const WatchTotals& totals() const noexcept;
  /// Readable for poll(2) when the process has ended; -1 if the kernel does not support this.
  int end_descriptor() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
