#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "perfmap/profile/process.hpp"

namespace perfmap {

/// Whether the offset of a region identifies its content. In anonymous memory of the same kind,
/// only the address differs.
inline bool has_offsets(const MappedFile& file) noexcept {
  switch (file.kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::heap:
    case RegionKind::stack: return false;
    default: return true;
  }
}

/// Which memory of a program holds code, even if it is not executable at the moment. Runtimes that
/// never map memory as writable and executable remove the execute right from a page while they
/// write to it, and return addresses may still point into that page.
class CodeRanges {
 public:
  CodeRanges() = default;
  explicit CodeRanges(const AddressSpace& space);

  /// Applies a change of the memory, including anonymous memory. Appends to `left` the parts of the
  /// change that count: all but those that only remove the execute right from code. O(log n), plus
  /// the regions that it covers.
  void take(const Region& change, std::vector<Region>& left);

 private:
  void add(const Region& region);
  /// Removes `range` from a region that overlaps it; the rest stays.
  void cut(const AddressRange& range);

  std::map<Address, Region> pieces_;  // by begin; without overlaps
};

/// `now` is a later state of the memory of the same program. Returns it with all memory marked
/// executable that was code `before` and still shows the same content. O(n).
std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now);

}  // namespace perfmap
