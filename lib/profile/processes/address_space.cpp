#include "perfmap/address_space.hpp"

#include <algorithm>
#include <cstdint>
#include <queue>

#include "processes/region_offsets.hpp"

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

}  // namespace perfmap
