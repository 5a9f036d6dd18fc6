// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Statistics of a map.
struct MapInfo {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t lost_lines = 0;  ///< malformed lines
  std::uint64_t names = 0;       ///< distinct names, compared by 64-bit hash
  Address first = 0;             ///< the lowest address that has a name
  Address last = 0;              ///< the highest
  std::uint64_t covered = 0;     ///< addresses that have a name
  /// Sum of the entries' sizes; size 0 counts as 1. If it is larger than `covered`, addresses were
  /// reused. Stops at 2^64 - 1.
  std::uint64_t claimed = 0;
  /// The runtime that wrote most entries, as detected from their names. It need not have written
  /// half of them, because perf maps of QEMU and HHVM also contain native symbols.
  Runtime runtime = Runtime::unknown;
};

enum class GroupBy : std::uint8_t {
  name,  ///< the result of without_tier()
  /// The raw name up to its first colon: "JS", "py", "Builtin", the class of "H:F (int)". Without a
  /// colon before the first blank, slash or bracket, and for HotSpot, the runtime; "" if that is
  /// unknown.
  prefix,
  tier,
};

/// Entries with the same key.
struct InfoGroup {
  std::string key;  ///< "" for entries without one
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< sum of their sizes, counted as in MapInfo::claimed
};

/// O(n log n), and 8 bytes per entry. The index must have one map.
PERFMAP_API MapInfo map_info(const Index& index, const Diagnostics& problems);

/// Largest first by bytes, then entries, then key. O(n log n). Names are compared by 64-bit hash.
/// Malformed lines go to `problems`.
PERFMAP_API std::vector<InfoGroup> group_entries(const Map& map, GroupBy by, Diagnostics& problems);

}  // namespace perfmap
