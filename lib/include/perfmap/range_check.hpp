#pragma once

#include <functional>
#include <span>
#include <string>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Two entries that want the same address.
struct RangeFinding {
  const Rule* rule;  ///< kReusedStart, kDuplicate, kOverlap or kNested
  EntryRef here;     ///< the later of the two: a later line, or a line of a later map
  EntryRef other;
};

/// Every conflict between entries of these maps, in address order: each entry is held against the
/// one before it that reaches furthest. O(n log n) time, 28 bytes an entry. Lines that make no
/// sense go to `problems`.
PERFMAP_API void for_each_conflict(std::span<const Map> maps, Diagnostics& problems,
                                   const std::function<void(const RangeFinding&)>& visit);

/// "overlaps 'foo' of line 7", or "… of line 7 of perf-42.map" where that is another map.
PERFMAP_API std::string message_of(const RangeFinding& finding, std::span<const Map> maps);

}  // namespace perfmap
