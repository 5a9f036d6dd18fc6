#pragma once

#include "perfmap/memory_map.hpp"

namespace perfmap {

/// Whether the offset of a region says something: not so of memory that nothing but its address
/// tells from other memory.
inline bool has_offsets(const MappedFile& file) noexcept {
  switch (file.kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::heap:
    case RegionKind::stack: return false;
    default: return true;
  }
}

}  // namespace perfmap
