#include "perfmap/timeline.hpp"

#include <algorithm>
#include <vector>

#include "index/piece_tree.hpp"
#include "index/pieces.hpp"
#include "index/search.hpp"

namespace perfmap {

struct Timeline::State {
  /// Which LOAD a MOVE moved, by the offsets of both.
  struct Moved {
    std::uint64_t move;
    std::uint64_t load;
    Address from;
  };

  Jitdump dump;
  std::optional<TimeConversion> conversion;
  std::uint64_t loads = 0;
  std::vector<Moved> moves;                    // ascending
  std::vector<Placements::OddMove> odd_moves;  // ascending
  PieceTree tree;

  explicit State(Jitdump of) : dump(std::move(of)) {}

  void build(Diagnostics& problems) {
    tree = {};
    Placements placements = read_placements(dump, conversion, problems);
    odd_moves = std::move(placements.odd_moves);
    const Pieces pieces = make_pieces(placements);
    loads = placements.count() - placements.moves;
    moves.clear();
    for (const Placements::Move& move : placements.moved) {
      moves.push_back({placements.record(move.placement), placements.record(move.load), move.from});
    }
    std::sort(moves.begin(), moves.end(),
              [](const Moved& a, const Moved& b) { return a.move < b.move; });
    tree = PieceTree(placements, pieces);
  }

  const Moved* moved_by(std::uint64_t move) const noexcept {
    const auto found = std::lower_bound(
        moves.begin(), moves.end(), move,
        [](const Moved& moved, std::uint64_t wanted) { return moved.move < wanted; });
    return found == moves.end() || found->move != move ? nullptr : &*found;
  }

  /// Reads the record only where the piece does not say it all: it lies in the file, and nobody has
  /// looked at that page for long.
  std::optional<CodeAt> code_of(const PieceTree::Found& piece) const noexcept {
    if (piece.record >= dump.bytes().size() || dump.input().was_truncated()) return std::nullopt;
    CodeAt code{piece.range, piece.record, piece.record, piece.from, piece.to};
    if (piece.moved) {
      code.load = moved_by(piece.record)->load;
    }
    if (piece.whole) return code;
    const auto range = range_of(piece);
    if (!range) return std::nullopt;
    code.range = *range;
    return code;
  }

  /// What counts of a MOVE that contradicts its LOAD.
  std::optional<std::uint64_t> odd_size(std::uint64_t move) const noexcept {
    const auto found =
        std::lower_bound(odd_moves.begin(), odd_moves.end(), move,
                         [](const auto& one, std::uint64_t wanted) { return one.offset < wanted; });
    if (found == odd_moves.end() || found->offset != move) return std::nullopt;
    return found->size;
  }

  std::optional<AddressRange> range_of(const PieceTree::Found& piece) const noexcept {
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
  std::optional<PieceTree::Found> pieces[kSearchGroup];
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
  for (const PieceTree::Found& piece : state_->tree.all_at(std::min(time, kEnd - 1))) {
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

}  // namespace perfmap
