#pragma once

#include <cstdint>
#include <vector>

#include "base/mmap_vector.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap::lint_rules {

/// A LOAD that has the code index of one before it in the file.
struct ReusedIndex {
  std::uint64_t offset = 0;  ///< of its record
  std::uint64_t first = 0;   ///< of the first record with that index
  std::uint64_t index = 0;
};

/// What the LOAD and MOVE records of a dump call their code.
struct CodeIndices {
  std::vector<ReusedIndex> reused;  ///< by offset
  std::vector<std::uint64_t> used;  ///< every index there is, ascending, without repetition
  std::uint64_t moves = 0;
};

/// Reads them. O(n log n).
CodeIndices read_indices(const Jitdump& dump);

}  // namespace perfmap::lint_rules
