// SPDX-License-Identifier: MIT
#include "perfmap/timeline.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "jitdump/lifetimes.hpp"
#include "map/name_count.hpp"
#include "map/segments.hpp"
#include "perfmap/diagnostic.hpp"

namespace perfmap {

namespace {

/// Pieces have 32-bit numbers, and there may be three times as many as placements.
constexpr std::size_t kMaxPlacements = std::size_t{1} << 30;

/// 0 if the range covers the last byte of the address space.
std::uint64_t end_of(const AddressRange& range) noexcept {
  return range.begin + std::max<std::uint64_t>(range.size, 1);
}

template <class T>
void reorder(MmapVector<T>& column, const std::vector<std::uint32_t>& order) {
  MmapVector<T> sorted(column.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

/// Sorts by time: threads may write their records out of order.
void sort_by_time(CodeEvents& placements) {
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

/// Finds the LOAD of the code that each MOVE moved, and compares their sizes. If they differ, one
/// is damaged, and the smaller size counts, because both records support it. The choice of the LOAD
/// does not depend on sizes: a damaged size could select other code.
class MovedCodeFinder {
 public:
  MovedCodeFinder(const Jitdump& dump, CodeEvents& placements, Diagnostics& problems)
      : dump_(dump), placements_(placements), problems_(problems), now_(placements.count()) {}

  void run() {
    for (std::uint32_t i = 0; i < placements_.count(); ++i) {
      const auto record = dump_.record_at(placements_.record(i));
      if (!record) return;
      // A record that has become one of the other kind since it was placed counts as neither.
      if (placements_.is_move(i)) {
        if (const auto move = decode_move(*record)) see_move(i, *move);
      } else if (const auto load = decode_load(*record)) {
        last_of_index_[load->code_index] = i;
        place(i, i);
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

  /// The choice, in this order: the last LOAD with this index, if its code is at the old address,
  /// even if overlaid (while several functions move up by one slot, they overlap); the code last
  /// placed at the old address, if it is still there, because indexes are reused; the last LOAD
  /// with this index.
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
    // The placement's own begin: the record's may have changed since.
    const Address begin = placements_.begin[placement];
    const std::uint64_t smaller = std::min(load->range.size, move.range.size);
    const std::uint64_t size = AddressRange::within_space(begin, smaller).size;
    const std::uint64_t offset = placements_.record(placement);
    placements_.end[placement] = end_of({begin, size});
    if (size == 0) placements_.offset[placement] |= CodeEvents::kEmpty;
    placements_.odd_moves.push_back({offset, size});
    problems_.add(rule::kOddMove, {offset, 0, 0},
                  "a MOVE of " + std::to_string(move.code_size) + " bytes, but the LOAD has " +
                      std::to_string(load->range.size) + "");
  }

  const Jitdump& dump_;
  CodeEvents& placements_;
  Diagnostics& problems_;
  std::vector<std::uint32_t> now_;  // per LOAD, the placement of its code now
  // LOADs by index. Ordered maps, because a hostile file could flood a hash table.
  std::map<std::uint64_t, std::uint32_t> last_of_index_;
  std::map<Address, std::uint32_t> at_;  // last placed there, unless moved away
};

/// Reports a header size that contradicts the file: records are read from byte 40.
void check_header_size(const Jitdump& dump, Diagnostics& problems) {
  const auto& header = dump.header();
  if (!header || header->total_size == dump.first_record()) return;
  if (dump.options().growing && header->total_size > dump.bytes().size()) return;
  problems.add(rule::kBadHeaderSize, {0, 0, 0},
               "a header of " + std::to_string(header->total_size) +
                   " bytes: perfmap reads records from byte 40");
}

}  // namespace

CodeEvents read_placements(const Jitdump& dump, const std::optional<TimeConversion>& conversion,
                           Diagnostics& problems) {
  CodeEvents placements;
  const auto add = [&](const JitRecord& record, const AddressRange& range, std::uint64_t flag) {
    if (placements.count() == kMaxPlacements || record.offset > LifetimeTree::kMaxOffset) return;
    const std::uint64_t time = conversion ? conversion->to_ns(record.time) : record.time;
    placements.time.push_back(std::min(time, Timeline::kEnd - 1));
    placements.begin.push_back(range.begin);
    placements.end.push_back(end_of(range));
    placements.offset.push_back(record.offset | flag | (range.size == 0 ? CodeEvents::kEmpty : 0));
  };
  dump.for_each(problems, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) {
      if (const auto load = decode_load(record)) {
        add(record, load->range, 0);
      } else {
        problems.add(rule::kUnendedName, {record.offset, 0, 0},
                     "the name of a LOAD has no NUL at its end");
      }
    } else if (record.is(JitRecordKind::move)) {
      if (const auto move = decode_move(record)) {
        add(record, move->range, CodeEvents::kMove);
        ++placements.moves;
      }
    }
  });
  sort_by_time(placements);
  if (placements.moves != 0) MovedCodeFinder(dump, placements, problems).run();
  check_header_size(dump, problems);
  return placements;
}

struct Timeline::State {
  /// The LOAD that a MOVE moved, by the offsets of both records.
  struct Moved {
    std::uint64_t move;
    std::uint64_t load;
    Address from;
  };

  Jitdump dump;
  std::optional<TimeConversion> conversion;
  std::uint64_t loads = 0;
  std::vector<Moved> moves;                    // ascending
  std::vector<CodeEvents::OddMove> odd_moves;  // ascending
  LifetimeTree tree;

  explicit State(Jitdump of) : dump(std::move(of)) {}

  void build(Diagnostics& problems) {
    tree = {};
    CodeEvents placements = read_placements(dump, conversion, problems);
    odd_moves = std::move(placements.odd_moves);
    const CodeLifetimes pieces = make_pieces(placements);
    loads = placements.count() - placements.moves;
    moves.clear();
    for (const CodeEvents::Move& move : placements.moved) {
      moves.push_back({placements.record(move.placement), placements.record(move.load), move.from});
    }
    std::sort(moves.begin(), moves.end(),
              [](const Moved& a, const Moved& b) { return a.move < b.move; });
    tree = LifetimeTree(placements, pieces);
  }

  const Moved* moved_by(std::uint64_t move) const noexcept {
    const auto found = std::lower_bound(
        moves.begin(), moves.end(), move,
        [](const Moved& moved, std::uint64_t wanted) { return moved.move < wanted; });
    return found == moves.end() || found->move != move ? nullptr : &*found;
  }

  /// Reads the record only if the piece lacks something: its page in the file is probably not in
  /// memory.
  std::optional<CodeAt> code_of(const LifetimeTree::Found& piece) const noexcept {
    if (piece.record >= dump.bytes().size() || dump.input().was_truncated()) return std::nullopt;
    CodeAt code{piece.range, piece.record, piece.record, piece.from, piece.to};
    if (piece.moved) {
      const Moved* const moved = moved_by(piece.record);
      if (moved == nullptr) return std::nullopt;
      code.load = moved->load;
    }
    if (piece.whole) return code;
    // A record that has changed since the piece was made is no longer about it.
    const auto range = range_of(piece);
    const bool has_piece =
        range && range->begin <= piece.range.begin && range->last() >= piece.range.last();
    if (!has_piece) return std::nullopt;
    code.range = *range;
    return code;
  }

  /// The size that counts for a MOVE that contradicts its LOAD.
  std::optional<std::uint64_t> odd_size(std::uint64_t move) const noexcept {
    const auto found =
        std::lower_bound(odd_moves.begin(), odd_moves.end(), move,
                         [](const auto& one, std::uint64_t wanted) { return one.offset < wanted; });
    if (found == odd_moves.end() || found->offset != move) return std::nullopt;
    return found->size;
  }

  std::optional<AddressRange> range_of(const LifetimeTree::Found& piece) const noexcept {
    const auto record = dump.record_at(piece.record);
    if (!record) return std::nullopt;
    if (piece.moved) return range_of_move(*record);
    const auto load = decode_load(*record);
    return load ? std::optional(load->range) : std::nullopt;
  }

  std::optional<AddressRange> range_of_move(const JitRecord& record) const noexcept {
    auto move = decode_move(record);
    if (!move) return std::nullopt;
    if (const auto size = odd_size(record.offset)) move->range.size = *size;
    return move->range;
  }
};

Timeline::Timeline(Jitdump dump, Diagnostics& problems,
                   const std::optional<TimeConversion>& conversion)
    : state_(std::make_unique<State>(std::move(dump))) {
  state_->conversion = conversion;
  state_->build(problems);
}

Timeline::Timeline(Timeline&&) noexcept = default;
Timeline& Timeline::operator=(Timeline&&) noexcept = default;
Timeline::~Timeline() = default;

const Jitdump& Timeline::dump() const noexcept { return state_->dump; }

std::uint64_t Timeline::time_of(const JitRecord& record) const noexcept {
  const std::uint64_t time =
      state_->conversion ? state_->conversion->to_ns(record.time) : record.time;
  return std::min(time, kEnd - 1);
}

std::optional<CodeAt> Timeline::find(Address address, std::uint64_t time) const noexcept {
  const auto piece = state_->tree.find(address, std::min(time, kEnd - 1));
  return piece ? state_->code_of(*piece) : std::nullopt;
}

void Timeline::find_all(std::span<const AddressAtTime> asked,
                        std::span<std::optional<CodeAt>> answers) const noexcept {
  std::uint64_t addresses[kSearchGroup];
  std::uint64_t times[kSearchGroup];
  std::optional<LifetimeTree::Found> pieces[kSearchGroup];
  std::size_t done = 0;
  for (; asked.size() - done >= kSearchGroup; done += kSearchGroup) {
    for (std::size_t i = 0; i < kSearchGroup; ++i) {
      addresses[i] = asked[done + i].address;
      times[i] = std::min(asked[done + i].time, kEnd - 1);
    }
    state_->tree.find_group(addresses, times, pieces);
    for (std::size_t i = 0; i < kSearchGroup; ++i) {
      answers[done + i] = pieces[i] ? state_->code_of(*pieces[i]) : std::nullopt;
    }
  }
  for (; done < asked.size(); ++done) answers[done] = find(asked[done].address, asked[done].time);
}

void Timeline::for_each_at(std::uint64_t time,
                           const std::function<void(const PlacedCode&)>& visit) const {
  for (const LifetimeTree::Found& piece : state_->tree.all_at(std::min(time, kEnd - 1))) {
    if (const auto code = state_->code_of(piece)) visit({piece.range, *code});
  }
}

std::optional<MovedCode> Timeline::moved_by(std::uint64_t move_offset) const noexcept {
  const State::Moved* const moved = state_->moved_by(move_offset);
  const auto record = moved != nullptr ? dump().record_at(move_offset) : std::nullopt;
  const auto range = record ? state_->range_of_move(*record) : std::nullopt;
  if (!range) return std::nullopt;
  return MovedCode{moved->load, moved->from, range->size};
}

std::uint64_t Timeline::load_count() const noexcept { return state_->loads; }
std::uint64_t Timeline::move_count() const noexcept { return state_->moves.size(); }

Result<Growth> Timeline::refresh(Diagnostics& problems) {
  Result<Growth> growth = state_->dump.refresh();
  if (growth && *growth != Growth::unchanged) state_->build(problems);
  return growth;
}

namespace {

void count(const JitRecord& record, DumpInfo& info, NameCount& names) {
  info.first_time = std::min(info.first_time.value_or(record.time), record.time);
  info.last_time = std::max(info.last_time, record.time);
  if (record.id >= info.records.size()) {
    ++info.unknown_records;
    return;
  }
  ++info.records[record.id];
  if (const auto load = decode_load(record)) {
    names.add(load->name);
    info.code_bytes += load->code.size();
    add_size(info.claimed, std::max<std::uint64_t>(load->range.size, 1));
  } else if (record.is(JitRecordKind::load) ||
             (record.is(JitRecordKind::move) && !decode_move(record))) {
    ++info.bad_records;
  }
}

}  // namespace

DumpInfo dump_info(const Timeline& timeline) {
  const Jitdump& dump = timeline.dump();
  DumpInfo info;
  NameCount names;
  Diagnostics ignored(0);
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(ignored)) count(*record, info, names);
  info.bytes = dump.bytes().size();
  info.lost_bytes = reader.lost_bytes();
  info.names = names.different();
  info.runtime = names.runtime();
  bool any = false;
  timeline.for_each_at(Timeline::kEnd, [&](const PlacedCode& placed) {
    if (!any) info.first = placed.piece.begin;
    any = true;
    const std::uint64_t size = std::max<std::uint64_t>(placed.piece.size, 1);
    add_size(info.covered, size);
    info.last = placed.piece.begin + (size - 1);
  });
  return info;
}

MapText map_text_at(const Timeline& timeline, std::uint64_t time) {
  MapText map;
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const auto record = timeline.dump().record_at(placed.code.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load) return;  // the file was truncated: the rest is useless
    // Code of size 0 counts for its first byte, like a map entry of size 0.
    const std::uint64_t size = placed.code.range.size == 0 ? 0 : placed.piece.size;
    append_entry(map, placed.piece.begin, size, load->name);
  });
  return map;
}

}  // namespace perfmap
