#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/jitdump_json.hpp"
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// What a merged jitdump holds, and what was changed to make it one.
struct DumpMergeStats {
  std::uint64_t loads = 0;
  std::uint64_t moves = 0;
  std::uint64_t duplicates = 0;     ///< LOADs and MOVEs that an earlier dump had, left out
  std::uint64_t lost_moves = 0;     ///< of what was not there, left out
  std::uint64_t other_records = 0;  ///< of unknown kinds, and CLOSE, left out
  bool several_pids = false;        ///< the header names the first one's
};

/// Writes one jitdump of several, oldest first: records in the order of their times, each LOAD
/// right behind its DEBUG_INFO and UNWINDING_INFO, code_index counted from 1, as perf needs them. A
/// LOAD or MOVE that another dump has too, to the byte but for its index, as a child's copy of its
/// parent's dump does, comes once. The header is the first dump's; names, lines, code, times and
/// ids stay as they are. Does not commit `out`.
///
/// Holds about 200 bytes a record. O(n log n). Fails with invalid_argument where the machines
/// differ, or some times are nanoseconds and others ticks.
PERFMAP_API Result<DumpMergeStats> merge_dumps(std::span<const Jitdump> dumps, OutputFile& out,
                                               Diagnostics& problems);

/// The dump that says what a map says: a LOAD of time 0 for each entry, in the order of the lines,
/// so that the later wins. A map knows no code: see DumpBytes. `pid` goes into every record.
/// Fails with too_large where zeros in place of code would make it larger than
/// DumpBytes::kMostBytes.
PERFMAP_API Result<DumpBytes> dump_of_map(const Map& map, std::uint32_t pid, Diagnostics& problems);

}  // namespace perfmap
