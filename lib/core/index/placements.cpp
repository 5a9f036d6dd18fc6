#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "index/piece_tree.hpp"
#include "index/pieces.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

/// Pieces, of which there may be three times as many, are numbered in 32 bits.
constexpr std::size_t kMostPlacements = std::size_t{1} << 30;

/// Of what covers the last byte of the address space, 0.
std::uint64_t end_of(const AddressRange& range) noexcept {
  return range.begin + std::max<std::uint64_t>(range.size, 1);
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

/// Holds MOVEs against the LOADs before them that have their code index: where none of these has
/// the MOVE's size, one of the two records is damaged, and the smaller size of the last LOAD and
/// the MOVE is what both vouch for.
class MovedSizes {
 public:
  MovedSizes(const Jitdump& dump, Placements& placements, Diagnostics& problems)
      : dump_(dump), placements_(placements), problems_(problems) {}

  void check() {
    for (std::size_t i = 0; i < placements_.count(); ++i) {
      const auto record = dump_.record_at(placements_.record(i));
      if (!record) return;
      if (const auto load = decode_load(*record)) {
        sizes_.insert({load->code_index, load->range.size});
        last_[load->code_index] = load->range.size;
      } else if (const auto move = decode_move(*record)) {
        check(i, *move);
      }
    }
    std::sort(placements_.odd_moves.begin(), placements_.odd_moves.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }

 private:
  void check(std::size_t i, const MoveRecord& move) {
    const auto last = last_.find(move.code_index);
    if (last == last_.end() || sizes_.count({move.code_index, move.range.size}) != 0) return;
    const std::uint64_t size = std::min(last->second, move.range.size);
    const std::uint64_t offset = placements_.record(i);
    placements_.end[i] = end_of({move.range.begin, size});
    if (size == 0) placements_.offset[i] |= Placements::kEmpty;
    placements_.odd_moves.push_back({offset, size});
    problems_.add(rule::kOddMove, {offset, 0, 0},
                  "a MOVE of " + std::to_string(move.code_size) + " bytes, of which " +
                      std::to_string(last->second) + " were loaded");
  }

  const Jitdump& dump_;
  Placements& placements_;
  Diagnostics& problems_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> sizes_;  // code index, size
  std::map<std::uint64_t, std::uint64_t> last_;              // size, by code index
};

/// A header's size that its file contradicts: records are read from behind its 40 bytes.
void check_header_size(const Jitdump& dump, Diagnostics& problems) {
  const auto& header = dump.header();
  if (!header || header->total_size == dump.first_record()) return;
  if (dump.options().growing && header->total_size > dump.bytes().size()) return;
  problems.add(rule::kBadHeaderSize, {0, 0, 0},
               "a header of " + std::to_string(header->total_size) + " bytes: it has 40");
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
  if (placements.moves != 0) MovedSizes(dump, placements, problems).check();
  check_header_size(dump, problems);
  return placements;
}

}  // namespace perfmap
