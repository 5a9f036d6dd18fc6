#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// How a name differs between two maps.
struct NameChange {
  enum class Kind : std::uint8_t {
    appeared,  ///< `after` is a range that only the second map has under this name
    vanished,  ///< `before` is one that only the first map has
    moved,     ///< a range of the first map became one of the second: another start or size
  };
  Kind kind;
  std::string_view name;
  AddressRange before;
  AddressRange after;
};

/// Compares entries as they are written, by name and range: overlaps are not resolved, and lines
/// that make no sense, the order of lines, and how often an entry is repeated do not count. Ranges
/// of one name that only one map has are paired as moves: first those of equal size (the same code
/// elsewhere), then the rest (moved or compiled again), both in address order. What is left over
/// has vanished or appeared. Lines of either map that make no sense go to `problems`. Changes come
/// by name; within a name those with a range in the first map, by that range, then what appeared.
/// Returns how many there are. O(n log n).
PERFMAP_API std::uint64_t diff_maps(const Map& before, const Map& after, Diagnostics& problems,
                                    const std::function<void(const NameChange&)>& visit);

}  // namespace perfmap
