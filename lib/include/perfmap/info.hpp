#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What a map holds.
struct MapInfo {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t lost_lines = 0;  ///< lines that made no sense
  std::uint64_t names = 0;       ///< different ones, told apart by 64 bits of hash
  Address first = 0;             ///< the lowest address that has a name
  Address last = 0;              ///< the highest
  std::uint64_t covered = 0;     ///< addresses that have a name
  /// Sum of the entries' sizes, where size 0 counts 1; more than covered: addresses were used
  /// again. Stops at 2^64 - 1.
  std::uint64_t claimed = 0;
  /// The one that wrote more entries than any other, as far as their names say; perf maps of QEMU
  /// or HHVM hold native symbols too, so it need not be half of them.
  Runtime runtime = Runtime::unknown;
};

enum class GroupBy : std::uint8_t {
  name,  ///< what without_tier() leaves
  /// The raw name up to its first colon: "JS", "py", "Builtin", the class of "H:F (int)". Where no
  /// such mark stands before the first blank, slash or bracket, and for HotSpot, the runtime; "" if
  /// that is unknown.
  prefix,
  tier,
};

/// Entries that have something in common.
struct InfoGroup {
  std::string key;  ///< "" for entries that have none
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< sum of their sizes, as MapInfo::claimed counts them
};

/// O(n log n), and 8 bytes an entry. The index is of one map.
PERFMAP_API MapInfo map_info(const Index& index, const Diagnostics& problems);

/// Largest first by bytes, then entries, then key. O(n log n). Names are told apart by 64 bits of
/// hash. Lines that make no sense go to `problems`.
PERFMAP_API std::vector<InfoGroup> group_entries(const Map& map, GroupBy by, Diagnostics& problems);

}  // namespace perfmap
