#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dwarf/units.hpp"
#include "elf/symbol_ranges.hpp"

namespace perfmap {

/// A function or an inlined call, with code of its own.
struct Scope {
  std::uint64_t die = 0;  ///< offset into .debug_info
  std::uint32_t parent = Partition::kNobody;
  bool is_inlined = false;
};

/// Which function, or inlined call, each address of a unit belongs to: the deepest. One walk over
/// DIEs, without recursion; O(n log n) in their bytes.
class ScopeIndex {
 public:
  /// Of the DIE at an offset into .debug_info, and all of its children. Holds at most about
  /// `most_bytes`; what is behind that, or behind damage, is missing.
  ScopeIndex(const UnitRoot& root, const AbbreviationTable& abbreviations, std::uint64_t die,
             std::uint64_t most_bytes);

  /// The scopes that contain the address, from the innermost out, at most 256.
  std::vector<Scope> chain(std::uint64_t address) const;
  std::size_t bytes() const noexcept;
  /// Bytes of DIEs and entries of lists that were gone over.
  std::uint64_t work() const noexcept { return work_; }

 private:
  friend class ScopeWalk;
  std::vector<Scope> scopes_;  // parents before children
  Partition partition_;
  std::uint64_t work_ = 0;
};

struct DieNames {
  std::string_view name;
  std::string_view linkage_name;
  /// Where an inlined call is.
  std::uint32_t call_file = 0;
  std::uint32_t call_line = 0;
  std::uint32_t call_column = 0;
};

/// The names of a DIE, taken where need be from what it is an instance or the definition of: at
/// most 8 steps, since these may go in a circle. Borrows from the file.
DieNames names_of(const UnitContext& context, std::uint64_t die);

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
