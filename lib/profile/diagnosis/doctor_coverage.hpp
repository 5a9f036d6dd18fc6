#pragma once

#include <functional>
#include <vector>

#include "perfmap/doctor.hpp"
#include "perfmap/memory_map.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/process_tracker.hpp"

namespace perfmap {

/// Adds up which executable memory of a process its entries name. Holds 16 bytes for each entry
/// that lies there, and no more than the most below where they overlap.
class Coverage {
 public:
  explicit Coverage(const MemoryMap& memory);
  void add(AddressRange entry);
  /// Whether a region of a file shows an ELF file, as far as that can be told.
  using IsElf = std::function<bool(const Region& region)>;
  /// What was added, and the memory. The memory map has to live still. Of files only those count of
  /// which something was added, and which `is_elf` denies.
  JitMemory result(const IsElf& is_elf);

 private:
  bool meets_executable(AddressRange entry) const noexcept;
  void unite();
  std::uint64_t named_in(const AddressRange& range) const noexcept;

  std::vector<const Region*> executable_;  // by address
  std::vector<AddressRange> named_;
  std::size_t unite_at_ = std::size_t{1} << 20;
  std::uint64_t hits_ = 0;
};

/// Of a living process, or of a recorded one. What cannot be read is taken for one.
bool shows_elf(const ProcSource& process, const Region& region);
bool shows_elf(const ProcessTracker::OpenModule& open_module, const Region& region);

}  // namespace perfmap
