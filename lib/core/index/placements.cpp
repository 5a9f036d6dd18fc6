#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

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

/// Finds which code each MOVE moved, and holds it against the LOAD of that code: of sizes that
/// differ one is damaged, and the smaller is what both records vouch for. Whose code moves does not
/// depend on sizes, or a damaged one would decide about other code.
class MovedCodeFinder {
 public:
  MovedCodeFinder(const Jitdump& dump, Placements& placements, Diagnostics& problems)
      : dump_(dump), placements_(placements), problems_(problems), now_(placements.count()) {}

  void run() {
    for (std::uint32_t i = 0; i < placements_.count(); ++i) {
      const auto record = dump_.record_at(placements_.record(i));
      if (!record) return;
      if (const auto load = decode_load(*record)) {
        last_of_index_[load->code_index] = i;
        place(i, i);
      } else if (const auto move = decode_move(*record)) {
        see_move(i, *move);
      }
    }
    std::sort(placements_.odd_moves.begin(), placements_.odd_moves.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }

 private:
  void place(std::uint32_t placement, std::uint32_t load) {
    now_[load] = placement;
    at_[placements_.begin[placement]] = load;
  }

  void see_move(std::uint32_t placement, const MoveRecord& move) {
    const auto load = moved_load(move);
    if (!load) return;
    const Address from = placements_.begin[now_[*load]];
    placements_.moved.push_back({placement, *load, from});
    const auto left = at_.find(from);
    if (left != at_.end() && left->second == *load) at_.erase(left);
    last_of_index_[move.code_index] = *load;
    place(placement, *load);
    check_size(placement, *load, move);
  }

  /// What had the index last, if it is at the old address, overlaid or not: functions that are all
  /// moved up by one are on top of each other meanwhile. Else what was put at the old address last,
  /// if it is still there, for indexes are used twice; else what had the index last.
  std::optional<std::uint32_t> moved_load(const MoveRecord& move) const {
    const auto last = last_of_index_.find(move.code_index);
    const bool has_last = last != last_of_index_.end();
    if (has_last && placements_.begin[now_[last->second]] == move.old_address) return last->second;
    const auto there = at_.find(move.old_address);
    if (there != at_.end()) return there->second;
    return has_last ? std::optional(last->second) : std::nullopt;
  }

  void check_size(std::uint32_t placement, std::uint32_t loaded, const MoveRecord& move) {
    const auto record = dump_.record_at(placements_.record(loaded));
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load || load->range.size == move.code_size) return;
    const std::uint64_t size = std::min(load->range.size, move.range.size);
    const std::uint64_t offset = placements_.record(placement);
    placements_.end[placement] = end_of({move.range.begin, size});
    if (size == 0) placements_.offset[placement] |= Placements::kEmpty;
    placements_.odd_moves.push_back({offset, size});
    problems_.add(rule::kOddMove, {offset, 0, 0},
                  "a MOVE of " + std::to_string(move.code_size) + " bytes, of which " +
                      std::to_string(load->range.size) + " were loaded");
  }

  const Jitdump& dump_;
  Placements& placements_;
  Diagnostics& problems_;
  std::vector<std::uint32_t> now_;  // of each LOAD, the placement where its code is
  // LOADs. Hash tables can be flooded.
  std::map<std::uint64_t, std::uint32_t> last_of_index_;
  std::map<Address, std::uint32_t> at_;  // what was put there last, unless it was moved away
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
  if (placements.moves != 0) MovedCodeFinder(dump, placements, problems).run();
  check_header_size(dump, problems);
  return placements;
}

}  // namespace perfmap
