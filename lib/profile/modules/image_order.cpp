#include "modules/image_order.hpp"

#include <algorithm>
#include <map>

#include "modules/gap_filling.hpp"

namespace perfmap {
namespace {

/// No gap that is longer than this is filled.
constexpr std::uint64_t kLongestFilling = std::uint64_t{1} << 20;
/// Filling that a small dump may have too.
constexpr std::uint64_t kFreeFilling = std::uint64_t{16} << 20;

using Numbers = std::vector<std::uint32_t>;

/// Ranges that overlap nothing that was added before.
class Layer {
 public:
  bool add(const AddressRange& range) {
    const auto after = taken_.lower_bound(range.begin);
    if (after != taken_.end() && after->first < range.end()) return false;
    if (after != taken_.begin() && std::prev(after)->second > range.begin) return false;
    taken_.emplace_hint(after, range.begin, range.end());
    return true;
  }

 private:
  std::map<Address, Address> taken_;
};

/// `layer` is by address.
std::vector<bool> gaps_to_fill(const std::vector<OrderedCode>& all, const Numbers& layer) {
  std::vector<AddressRange> ranges;
  for (const std::uint32_t i : layer) ranges.push_back(all[i].range);
  return perfmap::gaps_to_fill(ranges, {kLongestFilling, kFreeFilling});
}

/// The first place from `at` on that is aligned as the address is.
Address place_for(Address at, const OrderedCode& code) noexcept {
  return at + ((code.range.begin - at) & (kPlaceAlignment - 1));
}

/// Gives out places one behind the other.
class Places {
 public:
  explicit Places(Address last) : last_(last) {}

  Address end() const noexcept { return end_; }
  void begin_at(Address end) noexcept { end_ = end; }
  void give(OrderedCode& code, Address place) noexcept {
    if (place < end_ || place > last_ || code.range.size > last_ - place) return;
    code.place = place;
    end_ = place + code.range.size;
  }
  void give_next(OrderedCode& code) noexcept { give(code, place_for(end_, code)); }

 private:
  Address last_;
  Address end_ = kFirstPlace;
};

}  // namespace

OrderedEnds order_code(std::vector<OrderedCode>& all, Address last) {
  Layer taken;
  Numbers layer;
  Numbers rest;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].has_code) (taken.add(all[i].range) ? layer : rest).push_back(i);
  }
  std::sort(layer.begin(), layer.end(), [&](std::uint32_t a, std::uint32_t b) {
    return all[a].range.begin < all[b].range.begin;
  });
  const std::vector<bool> filled = gaps_to_fill(all, layer);
  Places places(last);
  for (std::size_t i = 0; i < layer.size(); ++i) {
    const bool goes_on = i > 0 && filled[i - 1];
    OrderedCode& code = all[layer[i]];
    if (goes_on) {
      places.give(code, places.end() + (code.range.begin - all[layer[i - 1]].range.end()));
    } else {
      places.give_next(code);
    }
  }
  for (const std::uint32_t i : rest) places.give_next(all[i]);
  OrderedEnds ends;
  ends.code = places.end();
  places.begin_at((ends.code + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment);
  for (OrderedCode& code : all) {
    if (!code.has_code) places.give_next(code);
  }
  ends.all = places.end();
  return ends;
}

}  // namespace perfmap
