#pragma once

#include <memory>
#include <span>
#include <vector>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/memory_map.hpp"

namespace perfmap {

/// What was mapped where in a process, at one moment: immutable, shared by pointer. A fork shares
/// its parent's, and whoever changes one makes another; regions share their MappedFile.
///
/// All members may be used from several threads. Holds 48 bytes a region.
class PERFMAP_API AddressSpace {
 public:
  AddressSpace() = default;

  /// `from`, with `changes` laid over it in their order: each takes the bytes it covers from what
  /// is there, which keeps the rest, with its offset in the file. A change without `file` leaves
  /// nothing. O(n + k log k) for k changes, whatever they overlap. Answers `from` itself where
  /// there is no change.
  static std::shared_ptr<const AddressSpace> changed(std::shared_ptr<const AddressSpace> from,
                                                     std::span<const Region> changes);
  /// Of regions in any order, such as parse_memory_map() reads them; later ones win.
  static std::shared_ptr<const AddressSpace> of(std::span<const Region> regions);

  /// Ascending, without overlaps, none empty.
  std::span<const Region> regions() const noexcept { return regions_; }

  /// The region that covers the address, or nullptr. Lives as long as the address space. O(log n).
  const Region* find(Address address) const noexcept;

  friend bool operator==(const AddressSpace&, const AddressSpace&) = default;

 private:
  std::vector<Region> regions_;
};

}  // namespace perfmap
