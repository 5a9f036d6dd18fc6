#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "modules/partition.hpp"
#include "modules/unit_cache.hpp"
#include "perfmap/debug_index.hpp"

namespace perfmap {

class DebugIndex::Impl {
 public:
  Impl(std::shared_ptr<const DwarfFile> file, DebugOptions options);

  /// By number in the file; Partition::kNobody where no unit has the address.
  std::uint32_t unit_of(Address vaddr) const noexcept;
  /// Answers for addresses of one unit: `found[i]` for each i of `which`, which are in the order of
  /// their addresses.
  void find(std::uint32_t unit, std::span<const std::size_t> which, std::span<const Address> vaddrs,
            std::span<std::vector<SourceFrame>> found) const;
  std::optional<SourceLine> find_line(Address vaddr) const;
  const DwarfFile& file() const noexcept { return *file_; }
  DebugIndexStats stats() const;

 private:
  void place_units();

  std::shared_ptr<const DwarfFile> file_;
  Partition units_;  // numbered from the last, so that the first unit wins
  std::uint64_t units_with_code_ = 0;
  mutable UnitCache cache_;
};

}  // namespace perfmap
