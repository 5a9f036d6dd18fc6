#include "stacks/injected_space.hpp"

#include <algorithm>

#include "perfmap/module.hpp"

namespace perfmap {

/// As Symbolizer asks: an ELF file is the answer wherever it is mapped, and of a file that is none,
/// or that cannot be read, dumps are.
bool ElfRegions::is_elf(pid_t pid, const Region& region) {
  if (!region.file->is_file() && region.file->kind != RegionKind::vdso) return false;
  if (!tracker_.options().open_module) return true;
  const auto [place, is_new] = known_.try_emplace(region.file);
  if (is_new) place->second = tracker_.module_of(pid, region).has_value();
  return place->second;
}

/// Where the file has no name for its code, nothing is lost.
bool ElfRegions::has_symbol(pid_t pid, const Region& region, Address address) {
  if (!tracker_.options().open_module) return true;
  const auto module = tracker_.module_of(pid, region);
  if (!module) return false;
  const auto vaddr = (*module)->file_offset_to_vaddr(address - region.range.begin + region.offset);
  return vaddr && (*module)->find_symbol(*vaddr);
}

void ElfRegions::look(pid_t pid, std::uint64_t time, Ranges& ranges) {
  auto space = tracker_.at(pid, time);
  if (space == ranges.space) return;
  ranges.elf.clear();
  if (space != nullptr) {
    for (const Region& region : space->regions()) {
      if (is_elf(pid, region)) ranges.elf.push_back(region);
    }
  }
  ranges.space = std::move(space);
}

const Region* ElfRegions::first_in(const Ranges& ranges, const AddressRange& place) noexcept {
  const auto next = std::ranges::partition_point(
      ranges.elf, [&](const Region& elf) { return elf.range.end() <= place.begin; });
  return next == ranges.elf.end() || next->range.begin >= place.end() ? nullptr : &*next;
}

bool ElfRegions::is_free(const CodeMapping& place, pid_t pid) {
  Ranges ranges;
  look(pid, place.time, ranges);
  return first_in(ranges, place.range) == nullptr;
}

std::uint64_t ElfRegions::cut(std::vector<CodeMapping>& mappings, pid_t pid) {
  Ranges ranges;
  std::uint64_t dropped = 0;
  std::erase_if(mappings, [&](CodeMapping& mapping) {
    look(pid, mapping.time, ranges);
    AddressRange& code = mapping.range;
    const Region* const next = first_in(ranges, code);
    if (next == nullptr) return false;
    if (next->range.begin > code.begin) {
      code.size = next->range.begin - code.begin;
      return false;
    }
    if (!has_symbol(pid, *next, code.begin)) return false;
    if (mapping.offset != CodeMapping::kNothing) ++dropped;
    return true;
  });
  return dropped;
}

}  // namespace perfmap
