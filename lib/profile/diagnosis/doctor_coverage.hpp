#pragma once

#include <vector>

#include "perfmap/doctor.hpp"
#include "perfmap/memory_map.hpp"

namespace perfmap {

/// Adds up which executable memory of a process its entries name. Holds 16 bytes for each entry
/// that lies there, and no more than the most below where they overlap.
class Coverage {
 public:
  explicit Coverage(const MemoryMap& memory);
  void add(AddressRange entry);
  /// What was added, and the memory. The memory map has to live still.
  JitMemory result();

 private:
  bool meets_executable(AddressRange entry) const noexcept;
  void unite();
  void count(const Region& region, JitMemory& memory) const;

  std::vector<const Region*> executable_;  // by address
  std::vector<AddressRange> named_;
  std::size_t unite_at_ = std::size_t{1} << 20;
  std::uint64_t hits_ = 0;
};

}  // namespace perfmap
