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

/// Compares entries by name and range; lines that make no sense and the order of lines do not
/// count, nor does how often an entry is repeated. Ranges of one name that only one map has are
/// paired in address order as moves; what is left over has vanished or appeared. Changes come by
/// name, then by address. Returns how many there are. O(n log n).
PERFMAP_API std::uint64_t diff_maps(const Map& before, const Map& after,
                                    const std::function<void(const NameChange&)>& visit);

}  // namespace perfmap
