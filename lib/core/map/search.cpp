// SPDX-License-Identifier: MIT
#include <algorithm>

#include "map/search_body.hpp"
#include "map/segments.hpp"

namespace perfmap {

#if defined(__x86_64__)
extern const Search kSearchAvx2;
#endif

const Search& search() noexcept {
  static constexpr Search kPlain = {search_one, search_one_of, search_group};
#if defined(__x86_64__)
  static const Search& best = __builtin_cpu_supports("avx2") != 0 ? kSearchAvx2 : kPlain;
  return best;
#else
  return kPlain;
#endif
}

SearchTree::SearchTree(std::span<const std::uint64_t> values) {
  levels_.push_back({values.data(), values.size()});
  while (levels_.back().count > kFanout) {
    const SearchLevel& below = levels_.back();
    MmapVector<std::uint64_t> level((below.count + kFanout - 1) / kFanout);
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = below.values[i * kFanout];
    upper_.push_back(std::move(level));
    levels_.push_back({upper_.back().data(), upper_.back().size()});
  }
  std::reverse(levels_.begin(), levels_.end());
}

}  // namespace perfmap
