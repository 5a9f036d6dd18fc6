#pragma once

#include <cstdint>
#include <vector>

#include "modules/partition.hpp"
#include "modules/scope_index.hpp"
#include "modules/unit_root.hpp"

namespace perfmap {

/// Which function each address of a unit belongs to, without what was inlined there: one walk over
/// the unit's DIEs that reads little but their sizes. Inlined calls outside of any function count
/// as functions. O(n log n) in the unit's bytes.
class FunctionIndex {
 public:
  static constexpr std::uint32_t kNobody = Partition::kNobody;

  FunctionIndex() = default;
  /// Holds at most about `most_bytes`; what is behind that, or behind damage, is missing.
  FunctionIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                std::uint64_t most_bytes);

  /// The number of the one that comes last in the unit, or kNobody.
  std::uint32_t find(std::uint64_t address) const noexcept { return partition_.find(address); }
  /// Offset into .debug_info.
  std::uint64_t die_of(std::uint32_t number) const noexcept { return dies_[number]; }
  std::size_t bytes() const noexcept {
    return dies_.capacity() * sizeof(std::uint64_t) + partition_.bytes();
  }

 private:
  friend class FunctionWalk;
  std::vector<std::uint64_t> dies_;  // ascending
  Partition partition_;
};

}  // namespace perfmap
