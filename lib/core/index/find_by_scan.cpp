#include <algorithm>
#include <map>
#include <vector>

#include "formats/map_ranges.hpp"
#include "index/run.hpp"
#include "perfmap/index.hpp"

namespace perfmap {
namespace {

/// The best answer so far for each address; offers come in file order.
class Answers {
 public:
  Answers(Overlap overlap, std::span<const Map> maps, std::span<const Address> addresses)
      : overlap_(overlap),
        maps_(maps),
        addresses_(addresses),
        best_(addresses.size(), {0, UINT64_MAX}) {}

  /// From now on looks at names, too: whether an address has several in one map.
  void look_for_reuse() { first_of_map_.resize(addresses_.size()); }

  void offer(std::uint64_t begin, std::uint64_t size, std::uint64_t line) {
    const std::uint64_t reach = std::max<std::uint64_t>(size, 1);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] - begin >= reach) continue;
      take(best_[i], {reach, line});
      if (!first_of_map_.empty()) compare(first_of_map_[i], line);
    }
  }
  void write_reused(std::span<bool> reused) const noexcept {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const auto& maps = first_of_map_[i];
      const auto of_map = maps.find(Hit{best_[i].line}.map());
      reused[i] = of_map != maps.end() && of_map->second.has_rival;
    }
  }
  void write(std::span<Hit> hits) const noexcept {
    for (std::size_t i = 0; i < best_.size(); ++i) hits[i] = Hit{best_[i].line};
  }

 private:
  void take(Precedence::Rank& best, const Precedence::Rank& offered) const noexcept {
    const bool nobody_yet = best.line == UINT64_MAX;
    if (nobody_yet || Precedence(overlap_, {}).wins(offered, best)) best = offered;
  }

  /// The first entry of a map at an address, and whether another one has another name.
  struct First {
    std::uint64_t line;
    bool has_rival = false;
  };
  using Firsts = std::map<std::uint64_t, First>;  // by map

  void compare(Firsts& firsts, std::uint64_t line) const {
    First& first = firsts.try_emplace(Hit{line}.map(), First{line}).first->second;
    if (!first.has_rival) first.has_rival = are_rivals(first.line, line, maps_);
  }

  Overlap overlap_;
  std::span<const Map> maps_;
  std::span<const Address> addresses_;
  std::vector<Precedence::Rank> best_;
  std::vector<Firsts> first_of_map_;  // of each address
};

struct Offer {
  Answers& answers;
  std::uint64_t tag;

  void expect(std::size_t) const noexcept {}
  void operator()(const AddressRange& range, std::uint64_t offset) const {
    answers.offer(range.begin, range.size, tag | offset);
  }
};

void offer_all(std::span<const Map> maps, Answers& answers, Diagnostics& problems) {
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::uint64_t tag = std::uint64_t{i} << kMapShift;
    for_each_range(maps[i], 0, 1, problems, Offer{answers, tag});
  }
}

}  // namespace

void find_by_scan(std::span<const Map> maps, Overlap overlap, std::span<const Address> addresses,
                  std::span<Hit> hits, Diagnostics& problems) {
  Answers answers(overlap, maps, addresses);
  offer_all(maps, answers, problems);
  answers.write(hits);
}

void find_by_scan(std::span<const Map> maps, Overlap overlap, std::span<const Address> addresses,
                  std::span<Hit> hits, std::span<bool> reused, Diagnostics& problems) {
  Answers answers(overlap, maps, addresses);
  answers.look_for_reuse();
  offer_all(maps, answers, problems);
  answers.write(hits);
  answers.write_reused(reused);
}

std::optional<Entry> entry_of(std::span<const Map> maps, Hit hit) noexcept {
  return maps[hit.map()].entry_at(hit.offset());
}

}  // namespace perfmap
