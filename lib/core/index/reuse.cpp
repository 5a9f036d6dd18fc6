#include "index/reuse.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace perfmap {
namespace {

std::string_view name_of(std::uint64_t line, std::span<const Map> maps) noexcept {
  const Hit hit{line};
  const auto entry = maps[hit.map()].entry_at(hit.offset());
  return entry ? entry->name : std::string_view();
}

/// The entries of one map that reach to where the sweep is, and how many of them share a name.
class OpenEntries {
 public:
  OpenEntries(std::uint64_t map, std::span<const Map> maps) : map_(map), maps_(maps) {}

  /// Goes on to `at`, where the next entry begins; what was of several names before it goes to
  /// `reused`.
  void advance(Address at, ReusedAddresses& reused) {
    while (!open_.empty() && open_.front().last < at) close_first(reused);
    if (at > at_) say_until(at - 1, reused);
    at_ = at;
  }
  void open(Address last, std::uint64_t line) {
    // Alone, an entry's name does not matter: it is looked at when a second one comes.
    if (open_.size() == 1 && names_.empty()) ++names_[hash_of(open_.front().line)];
    if (!open_.empty()) ++names_[hash_of(line)];
    open_.push_back({last, line});
    std::push_heap(open_.begin(), open_.end(), ends_later);
  }
  void finish(ReusedAddresses& reused) {
    while (!open_.empty()) close_first(reused);
  }

 private:
  struct Open {
    Address last;
    std::uint64_t line;
  };
  static bool ends_later(const Open& a, const Open& b) noexcept { return a.last > b.last; }

  std::size_t hash_of(std::uint64_t line) const noexcept {
    return std::hash<std::string_view>{}(name_of(line, maps_));
  }

  void say_until(Address last, ReusedAddresses& reused) const {
    if (names_.size() > 1 && at_ <= last) reused.add(at_, last, map_);
  }

  void close_first(ReusedAddresses& reused) {
    std::pop_heap(open_.begin(), open_.end(), ends_later);
    const Open closed = open_.back();
    open_.pop_back();
    say_until(closed.last, reused);
    at_ = closed.last == UINT64_MAX ? closed.last : closed.last + 1;
    if (names_.empty()) return;
    const auto name = names_.find(hash_of(closed.line));
    if (name != names_.end() && --name->second == 0) names_.erase(name);
    if (open_.empty()) names_.clear();
  }

  std::uint64_t map_;
  std::span<const Map> maps_;
  Address at_ = 0;
  std::vector<Open> open_;                                // a heap: what ends first is in front
  std::unordered_map<std::size_t, std::uint64_t> names_;  // how often each is open, by its hash
};

}  // namespace

void ReusedAddresses::settle() {
  const auto key = [](const Span& span) { return std::tuple(span.map, span.first, span.last); };
  std::sort(spans_.begin(), spans_.end(),
            [&](const Span& a, const Span& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (const Span& span : spans_) {
    Span* const before = kept == 0 ? nullptr : &spans_[kept - 1];
    const bool joins = before != nullptr && before->map == span.map &&
                       (span.first <= before->last || span.first == before->last + 1);
    if (joins) {
      before->last = std::max(before->last, span.last);
    } else {
      spans_[kept++] = span;
    }
  }
  spans_.resize(kept);
  spans_.shrink_to_fit();
}

bool ReusedAddresses::contains(Address address, std::uint64_t map) const noexcept {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), std::tuple(map, address),
                       [](const std::tuple<std::uint64_t, Address>& wanted, const Span& span) {
                         return wanted < std::tuple(span.map, span.first);
                       });
  return after != spans_.begin() && after[-1].map == map && address <= after[-1].last;
}

ReusedAddresses find_reused(const Columns& sorted, std::span<const Map> maps) {
  ReusedAddresses reused;
  std::unordered_map<std::uint64_t, OpenEntries> of_maps;
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    const std::uint64_t line = sorted.line[i];
    const std::uint64_t map = Hit{line}.map();
    OpenEntries& open = of_maps.try_emplace(map, map, maps).first->second;
    open.advance(sorted.begin[i], reused);
    open.open(last_of(sorted.begin[i], sorted.size[i], line, maps), line);
  }
  for (auto& [map, open] : of_maps) open.finish(reused);
  reused.settle();
  return reused;
}

bool are_rivals(std::uint64_t line, std::uint64_t other, std::span<const Map> maps) noexcept {
  return line != other && Hit{line}.map() == Hit{other}.map() &&
         name_of(line, maps) != name_of(other, maps);
}

}  // namespace perfmap
