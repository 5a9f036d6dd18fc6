#include "processes/code_ranges.hpp"

#include <algorithm>

#include "processes/region_offsets.hpp"

namespace perfmap {
namespace {

/// The part of a region between two addresses, which must overlap it.
Region part_of(const Region& region, Address begin, Address end) {
  Region part = region;
  part.range.begin = std::max(begin, region.range.begin);
  part.range.size = std::min(end, region.range.end()) - part.range.begin;
  if (region.file != nullptr && has_offsets(*region.file))
    part.offset += part.range.begin - region.range.begin;
  return part;
}

/// Whether both show the same bytes where they overlap.
bool shows_the_same(const Region& a, const Region& b) noexcept {
  if (a.file != b.file) return false;
  return !has_offsets(*a.file) || a.offset - a.range.begin == b.offset - b.range.begin;
}

}  // namespace

CodeRanges::CodeRanges(const AddressSpace& space) {
  for (const Region& region : space.regions()) {
    if (region.access.execute) pieces_.emplace(region.range.begin, region);
  }
}

void CodeRanges::cut(const AddressRange& range) {
  auto piece = pieces_.lower_bound(range.begin);
  if (piece != pieces_.begin() && std::prev(piece)->second.range.end() > range.begin) --piece;
  while (piece != pieces_.end() && piece->first < range.end()) {
    const Region whole = std::move(piece->second);
    piece = pieces_.erase(piece);
    if (whole.range.begin < range.begin) {
      const Region first = part_of(whole, whole.range.begin, range.begin);
      pieces_.emplace(first.range.begin, first);
    }
    if (whole.range.end() > range.end()) {
      const Region last = part_of(whole, range.end(), whole.range.end());
      pieces_.emplace(last.range.begin, last);
    }
  }
}

void CodeRanges::add(const Region& region) {
  cut(region.range);
  pieces_.emplace(region.range.begin, region);
}

void CodeRanges::take(const Region& change, std::vector<Region>& left) {
  if (change.range.size == 0) return;
  if (change.file == nullptr || change.access.execute) {
    left.push_back(change);
    return change.file == nullptr ? cut(change.range) : add(change);
  }
  Address at = change.range.begin;
  auto piece = pieces_.lower_bound(at);
  if (piece != pieces_.begin() && std::prev(piece)->second.range.end() > at) --piece;
  std::vector<AddressRange> ended;
  for (; piece != pieces_.end() && piece->first < change.range.end(); ++piece) {
    const AddressRange& code = piece->second.range;
    if (!shows_the_same(piece->second, change)) {
      ended.push_back(code);
      continue;
    }
    if (at < code.begin) left.push_back(part_of(change, at, code.begin));
    at = std::max(at, std::min(code.end(), change.range.end()));
  }
  if (at < change.range.end()) left.push_back(part_of(change, at, change.range.end()));
  for (const AddressRange& range : ended) {
    const Address begin = std::max(range.begin, change.range.begin);
    cut({begin, std::min(range.end(), change.range.end()) - begin});
  }
}

std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now) {
  std::vector<Region> code;
  auto former = before.regions().begin();
  for (const Region& region : now->regions()) {
    while (former != before.regions().end() && former->range.end() <= region.range.begin) ++former;
    if (region.access.execute) continue;
    for (auto one = former; one != before.regions().end() && one->range.begin < region.range.end();
         ++one) {
      if (!one->access.execute || !shows_the_same(*one, region)) continue;
      code.push_back(part_of(region, one->range.begin, one->range.end()));
      code.back().access.execute = true;
    }
  }
  return AddressSpace::changed(std::move(now), code);
}

}  // namespace perfmap
