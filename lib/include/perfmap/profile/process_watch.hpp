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

/// What a look at a process's map and dumps has found. Views live until the visit is over.
struct WatchEvent {
  enum class Kind : std::uint8_t {
    entry,     ///< a line of the map
    load,      ///< a LOAD record: code appeared
    move,      ///< a MOVE record: code went from `from` to `range`
    close,     ///< a CLOSE record
    found,     ///< a file that is there now, and was not
    replaced,  ///< a file that is another one now, or was written anew: its entries come again
    removed,   ///< a file that is gone; what it had stays as it was
    refused,   ///< a file that is not believed: `name` says why
    executed,  ///< the process runs another program
  };

  Kind kind = Kind::entry;
  AddressRange range = {};
  Address from = 0;
  std::string_view name = {};    ///< raw bytes; of a move that of the code, where its LOAD was seen
  std::string_view source = {};  ///< the file
  std::uint64_t line = 0;        ///< of an entry, from 1
  std::uint64_t time = 0;        ///< of a record, as the dump has it
  std::uint64_t index = 0;       ///< of a record's code
  std::uint32_t tid = 0;         ///< of a record
  /// The process that the file is of, from which the watched one was forked; 0: its own.
  pid_t inherited_from = 0;
  bool has_ticks = false;  ///< `time` is the processor's counter, not nanoseconds
};

/// "entry", "load" and so on.
PERFMAP_API std::string_view to_string(WatchEvent::Kind kind) noexcept;

struct WatchOptions {
  Roots roots = {};
  bool any_owner = false;  ///< see find_process_map()
  bool new_only = false;   ///< nothing of what is there when the watch begins
};

struct WatchTotals {
  std::uint64_t entries = 0;  ///< lines, LOADs
  std::uint64_t moves = 0;
  std::uint64_t code_bytes = 0;  ///< of `entries`
  std::uint64_t lost = 0;        ///< lines and records that make no sense
};

/// Follows the perf map and the jitdumps of a living process: each look tells what was added since
/// the last one. Files that are not there yet are waited for; found as find_process_map() and
/// find_process_dumps() find them, and followed where they were found, even when it has gone.
/// Files of those that it was forked from are followed, too, until it execs: see living_parents().
/// A map has no times: what a parent adds to its map after the fork is reported, too.
///
/// A look at files that have not changed costs some ten microseconds. Files are looked for at most
/// as often as costs half a percent of a processor's time.
///
/// One thread at a time. Holds descriptors of the process, its root, and its files' directories.
class PERFMAP_API ProcessWatch {
 public:
  using Visit = std::function<void(const WatchEvent&)>;

  explicit ProcessWatch(ProcSource process, WatchOptions options = {});
  ProcessWatch(ProcessWatch&&) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) noexcept;
  ~ProcessWatch();

  /// Tells what is new. False once the process has ended, and all that it wrote was told.
  Result<bool> look(const Visit& visit);

  const WatchTotals& totals() const noexcept;
  /// Readable for poll(2) when the process has ended, or -1 where the kernel has no such thing.
  int end_descriptor() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
