#include "index/run.hpp"

#include <algorithm>

namespace perfmap {
namespace {

/// How many of the `count` ascending values are at most `key`. Without branches, for the compiler
/// to make vectors of.
std::size_t count_at_most(const std::uint64_t* values, std::size_t count,
                          std::uint64_t key) noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[i] <= key ? 1 : 0;
  return sum;
}

}  // namespace

Precedence::Rank Precedence::rank_of(std::uint64_t line) const noexcept {
  if (overlap_ != Overlap::inner) return {0, line};
  const Hit hit{line};
  const auto entry = maps_[hit.map()].entry_at(hit.offset());
  return {entry ? std::max<std::uint64_t>(entry->range.size, 1) : 0, line};
}

Run::Run(Columns segments) : segments_(std::move(segments)) {
  const Column<std::uint64_t>* below = &segments_.begin;
  while (below->size() > kFanout) {
    Column<std::uint64_t> level((below->size() + kFanout - 1) / kFanout);
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = (*below)[i * kFanout];
    levels_.push_back(std::move(level));
    below = &levels_.back();
  }
}

std::size_t Run::position_of(std::uint64_t address) const noexcept {
  // At each level `block` is the group of 16 whose first value is at most the address and whose
  // successor's is not; an address before everything stays in group 0 and comes out as 0.
  std::size_t block = 0;
  for (std::size_t level = levels_.size(); level-- > 0;) {
    const Column<std::uint64_t>& values = levels_[level];
    const std::size_t start = block * kFanout;
    const std::size_t count = std::min(kFanout, values.size() - start);
    const std::size_t below = count_at_most(values.data() + start, count, address);
    block = start + below - (below != 0 ? 1 : 0);
  }
  const std::size_t start = block * kFanout;
  const std::size_t count = std::min(kFanout, segments_.count() - start);
  return start + count_at_most(segments_.begin.data() + start, count, address);
}

void Run::positions_of(const Address* addresses, std::size_t* positions) const noexcept {
  std::size_t blocks[kGroup] = {};
  const auto step = [&](const Column<std::uint64_t>& values, std::size_t i) {
    const std::size_t start = blocks[i] * kFanout;
    const std::size_t count = std::min(kFanout, values.size() - start);
    return start + count_at_most(values.data() + start, count, addresses[i]);
  };
  for (std::size_t level = levels_.size(); level-- > 0;) {
    const Column<std::uint64_t>& below = level == 0 ? segments_.begin : levels_[level - 1];
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t after = step(levels_[level], i);
      blocks[i] = after - (after != 0 ? 1 : 0);
      __builtin_prefetch(below.data() + blocks[i] * kFanout);
      __builtin_prefetch(below.data() + blocks[i] * kFanout + kFanout / 2);
    }
  }
  for (std::size_t i = 0; i < kGroup; ++i) {
    positions[i] = step(segments_.begin, i);
    if (positions[i] == 0) continue;
    __builtin_prefetch(segments_.size.data() + positions[i] - 1);
    __builtin_prefetch(segments_.line.data() + positions[i] - 1);
  }
}

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

std::uint64_t Run::end_at(std::size_t position, std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t end = end_of(begin, size, segments_.line[position], maps);
  if (size != kTooLong || position + 1 == segments_.count()) return end;
  return std::min(end, segments_.begin[position + 1]);
}

std::uint64_t Run::answer(std::size_t after, std::uint64_t address,
                          std::span<const Map> maps) const noexcept {
  if (after == 0) return UINT64_MAX;
  const std::size_t position = after - 1;
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t distance = address - segments_.begin[position];
  const bool covers = size != kTooLong ? distance < size : address < end_at(position, maps);
  return covers ? segments_.line[position] : UINT64_MAX;
}

void Run::find_all(std::span<const Address> addresses, std::uint64_t* lines,
                   std::span<const Map> maps) const noexcept {
  std::size_t done = 0;
  std::size_t after = 0;  // position of the address before
  while (done < addresses.size()) {
    const std::size_t group = std::min(kGroup, addresses.size() - done);
    const Address* const asked = addresses.data() + done;
    if (std::is_sorted(asked - (done != 0 ? 1 : 0), asked + group)) {
      for (std::size_t i = 0; i < group; ++i) {
        after = gallop(after, asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else if (group < kGroup) {
      for (std::size_t i = 0; i < group; ++i) {
        after = position_of(asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else {
      std::size_t positions[kGroup];
      positions_of(asked, positions);
      for (std::size_t i = 0; i < kGroup; ++i) {
        lines[done + i] = answer(positions[i], asked[i], maps);
      }
      after = positions[kGroup - 1];
    }
    done += group;
  }
}

Segment Run::at(std::size_t position, std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  return {{begin, end_at(position, maps) - begin}, Hit{segments_.line[position]}};
}

std::uint64_t Run::bytes() const noexcept {
  std::uint64_t sum = segments_.count() * 20;
  for (const auto& level : levels_) sum += level.size() * 8;
  return sum;
}

}  // namespace perfmap
