// SPDX-License-Identifier: MIT
#include "process/code_ranges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace perfmap {
namespace {

/// Whether both show the same content where they overlap.
bool shows_the_same(const Region& a, const Region& b) noexcept {
  if (a.file != b.file) return false;
  return !has_offsets(*a.file) || a.offset - a.range.begin == b.offset - b.range.begin;
}

/// Calls `take` for the parts of data that are not code with the same content, until it returns
/// false.
template <class Take>
void for_each_other_part(const RegionTree& tree, const Region& data, const Take& take) {
  const AddressRange range = AddressRange::clamped(data.range.begin, data.range.size);
  Address at = range.begin;
  const RegionNode* const root = tree.root().get();
  const RegionNode* node = first_ending_after(root, at);
  for (; node != nullptr && node->region.range.begin < range.end();
       node = next_begun(root, node->region.range.begin)) {
    const Region& code = node->region;
    if (!code.access.execute || !shows_the_same(code, data)) continue;
    if (at < code.range.begin && !take(part_of(data, at, code.range.begin))) return;
    at = std::max(at, std::min(code.range.end(), range.end()));
  }
  if (at < range.end()) take(part_of(data, at, range.end()));
}

}  // namespace

void apply_keeping_code(RegionTree& tree, const Region& change) {
  if (change.file == nullptr || change.access.execute) return tree.apply(change);
  std::vector<Region> parts;
  for_each_other_part(tree, change, [&](Region part) {
    parts.push_back(std::move(part));
    return true;
  });
  for (const Region& part : parts) tree.apply(part);
}

bool keeps_all_code(const RegionTree& tree, const Region& data) {
  bool keeps = true;
  for_each_other_part(tree, data, [&](const Region&) { return keeps = false; });
  return keeps;
}

std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now) {
  std::vector<Region> code;
  const auto end = before.regions().end();
  auto former = before.regions().begin();
  for (const Region& region : now->regions()) {
    while (former != end && former->range.end() <= region.range.begin) ++former;
    if (region.access.execute) continue;
    for (auto one = former; one != end && one->range.begin < region.range.end(); ++one) {
      if (!one->access.execute || !shows_the_same(*one, region)) continue;
      code.push_back(part_of(region, one->range.begin, one->range.end()));
      code.back().access.execute = true;
    }
  }
  return AddressSpace::changed(std::move(now), code);
}

}  // namespace perfmap
