#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What a log of PyPy does not say of its dump.
struct LoopDumpOptions {
  std::uint32_t pid = 0;
  /// Makes times of the log's ticks, where these are the processor's time stamp counter. Without it
  /// all times are 0, and later code is told by the order of the records.
  std::optional<TimeConversion> conversion = {};
  TickBase base = TickBase::hex;  ///< of the ticks; automatic is hex
  bool bare = false;              ///< LOADs alone, without code: who wants names needs no more
};

/// The machine code of a log's loops and bridges as a jitdump: a LOAD for each one whose addresses
/// the log tells, in the order in which it does, named as the log names them. The code_index is one
/// more than the position in loops.all().
///
/// Code is what the log's jit-backend-dump sections say, as it was in the end, or when other code
/// took its place: guards that got a bridge jump there. `loops` must have kept it, and `log` is the
/// text that they were made of. Where bytes are missing there are zeros; see JitdumpBytes.
///
/// Before a LOAD comes a DEBUG_INFO where the operations tell their offsets and have debug merge
/// points: the lines of the program. What comes before them, and the code of failing guards behind
/// all operations, is of the line where the function begins.
///
/// Fails with too_large as dump_of_map() does. O(n log n + bytes of the log that belong to loops).
PERFMAP_API Result<JitdumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                               const LoopDumpOptions& options);

/// The same as a perf map: a line for each piece of memory that belonged to some loop or bridge in
/// the end, by address, without overlaps. Fails as dump_of_loops() does, which names alone
/// can make happen. O(n log n).
PERFMAP_API Result<MapText> map_of_loops(const CompiledLoops& loops);

}  // namespace perfmap
