#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "modules/cfi_entry.hpp"
#include "modules/symbol_table.hpp"

namespace perfmap {

/// Where the FDEs of a section lie, by the code that they are for: what .eh_frame_hdr would say.
/// Immutable. An FDE takes at least 12 bytes of the section, and as many here; of a section of more
/// than 4 GiB what lies beyond is not found.
class CfiIndex {
 public:
  CfiIndex() = default;
  /// Goes over the section once, as far as its lengths make sense. With `areas`, FDEs of code that
  /// lies in none of them are left out: linkers leave such behind where they drop functions.
  /// O(n log n).
  CfiIndex(const CfiSection& section, const CodeAreas* areas);

  struct Place {
    std::uint64_t offset = 0;
    Address next = UINT64_MAX;  ///< where the code of another FDE begins
  };
  /// The FDE whose code begins last at or before this address. O(log n).
  std::optional<Place> find(Address vaddr) const noexcept;

  std::size_t size() const noexcept { return begins_.size(); }
  std::uint64_t bytes() const noexcept { return begins_.capacity() * 8 + offsets_.capacity() * 4; }

 private:
  std::vector<Address> begins_;
  std::vector<std::uint32_t> offsets_;
};

}  // namespace perfmap
