#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "perfmap/profile/process.hpp"

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

/// Which memory of a program holds code, be it executable right now or not: runtimes that never
/// have memory both writable and executable take the right to execute from a page while they write
/// to it, and callers are in such a page all the same.
class CodeRanges {
 public:
  CodeRanges() = default;
  explicit CodeRanges(const AddressSpace& space);

  /// Takes in a change of the memory, one without a file included, and appends to `left` what there
  /// is to it: without what it only makes unexecutable. O(log n), and what it covers.
  void take(const Region& change, std::vector<Region>& left);

 private:
  void add(const Region& region);
  /// What is left of a piece that `range` lies in or reaches into.
  void cut(const AddressRange& range);

  std::map<Address, Region> pieces_;  // without overlaps, by where they begin
};

/// `now`, a later look at the memory of the same program, in which what was code `before`, and
/// still shows the same, is executable. O(n).
std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now);

}  // namespace perfmap
