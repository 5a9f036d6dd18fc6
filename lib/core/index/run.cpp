#include "index/run.hpp"

#include <algorithm>

namespace perfmap {
Precedence::Rank Precedence::rank_of(std::uint64_t line) const noexcept {
  if (overlap_ != Overlap::inner) return {0, line};
  const Hit hit{line};
  const auto entry = maps_[hit.map()].entry_at(hit.offset());
  return {entry ? std::max<std::uint64_t>(entry->range.size, 1) : 0, line};
}

Run::Run(Columns segments, ReusedAddresses reused)
    : segments_(std::move(segments)),
      reused_(std::move(reused)),
      tree_({segments_.begin.data(), segments_.count()}) {}

std::size_t Run::gallop(std::size_t from, std::uint64_t address) const noexcept {
  const std::uint64_t* const begins = segments_.begin.data();
  const std::size_t count = segments_.count();
  std::size_t step = 1;
  std::size_t low = from;  // everything before is at most the address
  while (low + step <= count && begins[low + step - 1] <= address) {
    low += step;
    step *= 2;
  }
  const std::size_t high = std::min(low + step, count);
  return static_cast<std::size_t>(std::upper_bound(begins + low, begins + high, address) - begins);
}

std::uint64_t Run::last_at(std::size_t position, std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t last = last_of(begin, size, segments_.line[position], maps);
  if (size != kTooLong || position + 1 == segments_.count()) return last;
  return std::min(last, segments_.begin[position + 1] - 1);
}

std::uint64_t Run::answer(std::size_t after, std::uint64_t address,
                          std::span<const Map> maps) const noexcept {
  if (after == 0) return UINT64_MAX;
  const std::size_t position = after - 1;
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t distance = address - segments_.begin[position];
  const bool covers = size != kTooLong ? distance < size : address <= last_at(position, maps);
  return covers ? segments_.line[position] : UINT64_MAX;
}

void Run::prefetch_answers(const std::size_t* positions) const noexcept {
  for (std::size_t i = 0; i < kSearchGroup; ++i) {
    if (positions[i] == 0) continue;
    __builtin_prefetch(segments_.size.data() + positions[i] - 1);
    __builtin_prefetch(segments_.line.data() + positions[i] - 1);
  }
}

std::uint64_t Run::find(std::uint64_t address, std::span<const Map> maps) const noexcept {
  return answer(search().one(tree_.levels(), payload(), address), address, maps);
}

void Run::find_all(std::span<const Address> addresses, std::uint64_t* lines,
                   std::span<const Map> maps) const noexcept {
  std::size_t done = 0;
  std::size_t after = 0;  // position of the address before
  while (done < addresses.size()) {
    const std::size_t group = std::min(kSearchGroup, addresses.size() - done);
    const Address* const asked = addresses.data() + done;
    if (std::is_sorted(asked - (done != 0 ? 1 : 0), asked + group)) {
      for (std::size_t i = 0; i < group; ++i) {
        after = gallop(after, asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else if (group < kSearchGroup) {
      for (std::size_t i = 0; i < group; ++i) {
        after = search().one(tree_.levels(), payload(), asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else {
      std::size_t positions[kSearchGroup];
      search().group(tree_.levels(), asked, positions);
      prefetch_answers(positions);
      for (std::size_t i = 0; i < kSearchGroup; ++i) {
        lines[done + i] = answer(positions[i], asked[i], maps);
      }
      after = positions[kSearchGroup - 1];
    }
    done += group;
  }
}

Segment Run::at(std::size_t position, std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  return {{begin, last_at(position, maps) - begin + 1}, Hit{segments_.line[position]}};
}

}  // namespace perfmap
