// SPDX-License-Identifier: MIT
// Any bytes are a memory map: its regions are sorted, do not overlap, and are found by address.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "perfmap/profile/process.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MappedFiles files;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const MemoryMap map = parse_memory_map(text, files);
  const auto space = AddressSpace::of(map.regions);
  Address end = 0;
  for (const Region& region : space->regions()) {
    require(region.range.size > 0 && region.range.begin >= end);
    end = region.range.end();
    require(space->find(region.range.begin) == &region && space->find(end - 1) == &region);
    jit_region_kind(region);
    require(!to_string(region.file->kind).empty());
  }
  // The last region wins, and every byte of every line is covered.
  if (!map.regions.empty()) {
    const Region& last = map.regions.back();
    const Region* const found = space->find(last.range.begin);
    require(found != nullptr && found->file == last.file && found->offset == last.offset);
  }
  for (const Region& region : map.regions) {
    require(space->find(region.range.begin) != nullptr);
    require(space->find(region.range.end() - 1) != nullptr);
  }
  return 0;
}
