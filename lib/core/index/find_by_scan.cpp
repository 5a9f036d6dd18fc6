#include <algorithm>
#include <vector>

#include "formats/map_ranges.hpp"
#include "index/run.hpp"
#include "perfmap/index.hpp"

namespace perfmap {
namespace {

/// The best answer so far for each address; offers come in file order.
class Answers {
 public:
  Answers(Overlap overlap, std::span<const Address> addresses)
      : overlap_(overlap), addresses_(addresses), best_(addresses.size(), {0, UINT64_MAX}) {}

  void offer(std::uint64_t begin, std::uint64_t size, std::uint64_t line) noexcept {
    const std::uint64_t reach = std::max<std::uint64_t>(size, 1);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] - begin < reach) take(best_[i], {reach, line});
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

  Overlap overlap_;
  std::span<const Address> addresses_;
  std::vector<Precedence::Rank> best_;
};

struct Offer {
  Answers& answers;
  std::uint64_t tag;

  void expect(std::size_t) const noexcept {}
  void operator()(const AddressRange& range, std::uint64_t offset) const noexcept {
    answers.offer(range.begin, range.size, tag | offset);
  }
};

}  // namespace

void find_by_scan(std::span<const Map> maps, Overlap overlap, std::span<const Address> addresses,
                  std::span<Hit> hits, Diagnostics& problems) {
  Answers answers(overlap, addresses);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::uint64_t tag = std::uint64_t{i} << kMapShift;
    for_each_range(maps[i], 0, 1, problems, Offer{answers, tag});
  }
  answers.write(hits);
}

std::optional<Entry> entry_of(std::span<const Map> maps, Hit hit) noexcept {
  return maps[hit.map()].entry_at(hit.offset());
}

}  // namespace perfmap
