#include <algorithm>
#include <numeric>

#include "index/piece_tree.hpp"
#include "index/pieces.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

/// Pieces, of which there may be three times as many, are numbered in 32 bits.
constexpr std::size_t kMostPlacements = std::size_t{1} << 30;

std::uint64_t end_of(const AddressRange& range) noexcept {
  return AddressRange::clamped(range.begin, std::max<std::uint64_t>(range.size, 1)).end();
}

template <class T>
void reorder(Column<T>& column, const std::vector<std::uint32_t>& order) {
  Column<T> sorted(column.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

/// Threads write their records as they get to it.
void sort_by_time(Placements& placements) {
  const std::uint64_t* const times = placements.time.data();
  if (std::is_sorted(times, times + placements.count())) return;
  std::vector<std::uint32_t> order(placements.count());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return times[a] < times[b]; });
  reorder(placements.begin, order);
  reorder(placements.end, order);
  reorder(placements.offset, order);
  reorder(placements.time, order);
}

}  // namespace

Placements read_placements(const Jitdump& dump, const std::optional<TimeConversion>& conversion,
                           Diagnostics& problems) {
  Placements placements;
  const auto add = [&](const JitRecord& record, const AddressRange& range, std::uint64_t flag) {
    if (placements.count() == kMostPlacements || record.offset > PieceTree::kMostOffset) return;
    const std::uint64_t time = conversion ? conversion->to_ns(record.time) : record.time;
    placements.time.push_back(std::min(time, Timeline::kEnd - 1));
    placements.begin.push_back(range.begin);
    placements.end.push_back(end_of(range));
    placements.offset.push_back(record.offset | flag | (range.size == 0 ? Placements::kEmpty : 0));
  };
  dump.for_each(problems, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) {
      if (const auto load = decode_load(record)) {
        add(record, load->range, 0);
      } else {
        problems.add(rule::kUnendedName, {record.offset, 0, 0}, "a LOAD whose name has no end");
      }
    } else if (record.is(JitRecordKind::move)) {
      if (const auto move = decode_move(record)) {
        add(record, move->range, Placements::kMove);
        ++placements.moves;
      }
    }
  });
  sort_by_time(placements);
  return placements;
}

}  // namespace perfmap
