#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/columns.hpp"

namespace perfmap {

/// The addresses that several entries of one map have, by different names: of a map, which has no
/// times, nobody can say whose code an address was. Empty, and for nothing, where entries do not
/// overlap; else 24 bytes a stretch of them.
class ReusedAddresses {
 public:
  /// From `first` to `last` in map number `map`. settle() comes before anything is asked.
  void add(Address first, Address last, std::uint64_t map) { spans_.push_back({map, first, last}); }
  void add(const ReusedAddresses& other) {
    spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  }
  void settle();

  /// O(log n).
  bool contains(Address address, std::uint64_t map) const noexcept;

 private:
  struct Span {
    std::uint64_t map;
    Address first;
    Address last;
  };
  std::vector<Span> spans_;  // ascending, apart from each other
};

/// Those of entries that are sorted by begin. O(n log n) whatever overlaps; looks only at names of
/// entries that overlap others.
ReusedAddresses find_reused(const Columns& sorted, std::span<const Map> maps);

/// Whether two lines are entries of one map by different names.
bool are_rivals(std::uint64_t line, std::uint64_t other, std::span<const Map> maps) noexcept;

}  // namespace perfmap
