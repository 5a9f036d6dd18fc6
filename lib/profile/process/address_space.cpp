#include "perfmap/address_space.hpp"

#include <algorithm>
#include <cstdint>
#include <queue>

#include "process/code_ranges.hpp"

namespace perfmap {

namespace {

/// Paints regions one over the other, from the lowest address to the highest: at each address the
/// one with the highest number wins.
class Painter {
 public:
  explicit Painter(std::vector<Region>& out) noexcept : out_(out) {}

  /// The numbers are positions in `all`, and `by_begin` is sorted by their addresses.
  void paint(std::span<const Region* const> all, std::span<const std::uint32_t> by_begin) {
    std::size_t next = 0;
    Address at = 0;
    while (next < by_begin.size() || !open_.empty()) {
      while (!open_.empty() && all[open_.top()]->range.end() <= at) open_.pop();
      if (open_.empty()) {
        if (next == by_begin.size()) return;
        at = std::max(at, all[by_begin[next]]->range.begin);
      } else {
        const Region& top = *all[open_.top()];
        Address until = top.range.end();
        if (next < by_begin.size()) until = std::min(until, all[by_begin[next]]->range.begin);
        emit(top, at, until);
        at = until;
      }
      while (next < by_begin.size() && all[by_begin[next]]->range.begin <= at) {
        open_.push(by_begin[next++]);
      }
    }
  }

 private:
  void emit(const Region& from, Address begin, Address end) {
    if (begin == end) return;
    if (last_ == &from && out_.back().range.end() == begin) {
      out_.back().range.size += end - begin;
      return;
    }
    last_ = from.file != nullptr ? &from : nullptr;
    if (from.file == nullptr) return;
    out_.push_back(from);
    out_.back().range = {begin, end - begin};
    if (has_offsets(*from.file)) out_.back().offset += begin - from.range.begin;
  }

  std::vector<Region>& out_;
  std::priority_queue<std::uint32_t> open_;
  const Region* last_ = nullptr;
};

bool is_in_order(std::span<const Region> regions) noexcept {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].file == nullptr || regions[i].range.size == 0) return false;
    if (i > 0 && regions[i].range.begin < regions[i - 1].range.end()) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const AddressSpace> AddressSpace::changed(std::shared_ptr<const AddressSpace> from,
                                                          std::span<const Region> changes) {
  if (changes.empty()) return from;
  std::vector<const Region*> all;
  all.reserve(from->regions_.size() + changes.size());
  for (const Region& region : from->regions_) all.push_back(&region);
  for (const Region& change : changes) all.push_back(&change);

  std::vector<std::uint32_t> by_begin(all.size());
  for (std::uint32_t i = 0; i < by_begin.size(); ++i) by_begin[i] = i;
  const auto begins_before = [&all](std::uint32_t a, std::uint32_t b) {
    return all[a]->range.begin < all[b]->range.begin;
  };
  const auto first_change = by_begin.begin() + static_cast<std::ptrdiff_t>(from->regions_.size());
  std::sort(first_change, by_begin.end(), begins_before);
  std::inplace_merge(by_begin.begin(), first_change, by_begin.end(), begins_before);

  auto made = std::make_shared<AddressSpace>();
  made->regions_.reserve(all.size());
  Painter(made->regions_).paint(all, by_begin);
  made->regions_.shrink_to_fit();
  return made;
}

std::shared_ptr<const AddressSpace> AddressSpace::of(std::span<const Region> regions) {
  if (!is_in_order(regions)) return changed(std::make_shared<AddressSpace>(), regions);
  auto made = std::make_shared<AddressSpace>();
  made->regions_.assign(regions.begin(), regions.end());
  return made;
}

const Region* AddressSpace::find(Address address) const noexcept {
  const auto behind = std::upper_bound(
      regions_.begin(), regions_.end(), address,
      [](Address asked, const Region& region) { return asked < region.range.begin; });
  if (behind == regions_.begin()) return nullptr;
  const Region& region = *(behind - 1);
  return region.range.contains(address) ? &region : nullptr;
}

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
