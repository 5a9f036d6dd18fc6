#include "perfmap/timeline.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "index/pieces.hpp"
#include "index/search.hpp"

namespace perfmap {
namespace {

/// A Piece in 32 bytes: two to a cache line. A size that needs more than 32 bits is looked up.
struct ShortPiece {
  std::uint64_t begin;
  std::uint64_t from;
  std::uint64_t to;
  std::uint32_t size;
  std::uint32_t placement;
};

constexpr std::uint32_t kLong = UINT32_MAX;

/// Of the numbers first..last, counted from 1, the one that is highest in a balanced tree in which
/// a number lies the higher the more zero bits it ends in.
std::size_t highest(std::size_t first, std::size_t last) noexcept {
  const std::size_t above = (first - 1) ^ last;
  return last & ~((std::size_t{1} << (std::bit_width(above) - 1)) - 1);
}

}  // namespace

/// Pieces hang on centers: addresses such that every piece has one in its range, and most have only
/// one. Where a piece has several it hangs on the highest of a balanced tree over all centers, so
/// that whoever holds an address hangs on the path to it. The pieces of one center all hold it, so
/// no two of them exist at the same time: they are in the order of time, and one of them at most
/// can hold an address at a time. (An interval tree in one direction, a sorted list in the other.)
struct Timeline::State {
  Jitdump dump;
  std::optional<TimeConversion> conversion;
  Column<std::uint64_t> offsets;  // of placements
  std::uint64_t moves_seen = 0;
  std::vector<Pieces::Move> moves;
  Column<std::uint64_t> centers;
  SearchTree search_tree;
  Column<std::uint32_t> first;  // of each center its first piece; one more at the end
  std::vector<bool> wide;       // centers that have a piece with several centers
  bool any_wide = false;
  Column<ShortPiece> pieces;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> long_sizes;  // by piece

  explicit State(Jitdump of) : dump(std::move(of)) {}

  void build(Diagnostics& problems) {
    Placements placements = read_placements(dump, conversion, problems);
    Pieces all = make_pieces(dump, placements);
    moves_seen = placements.moves;
    offsets = std::move(placements.offset);
    offsets.shrink();
    moves = std::move(all.moves);
    choose_centers(all.all);
    hang(all.all);
  }

  /// From the highest address down: a piece that has no center yet gets its beginning for one.
  void choose_centers(const std::vector<Piece>& all) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // begin, smallest end
    ranges.reserve(all.size());
    for (const Piece& piece : all) ranges.emplace_back(piece.begin, piece.end);
    std::sort(ranges.begin(), ranges.end());
    std::uint64_t center = UINT64_MAX;
    centers = {};
    for (std::size_t i = ranges.size(); i-- > 0;) {
      if (i > 0 && ranges[i - 1].first == ranges[i].first) continue;  // a smaller end comes
      if (ranges[i].second > center) continue;
      center = ranges[i].first;
      centers.push_back(center);
    }
    std::reverse(centers.data(), centers.data() + centers.size());
    centers.shrink();
    search_tree = SearchTree({centers.data(), centers.size()});
  }

  void hang(const std::vector<Piece>& all) {
    first = Column<std::uint32_t>(centers.size() + 1);
    wide.assign(centers.size(), false);
    any_wide = false;
    std::vector<std::uint32_t> home(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t low = centers_below(all[i].begin) + 1;
      const std::size_t high = centers_below(all[i].end);
      home[i] = static_cast<std::uint32_t>(highest(low, high) - 1);
      if (low != high) wide[home[i]] = any_wide = true;
      ++first[home[i] + 1];
    }
    for (std::size_t i = 0; i < centers.size(); ++i) first[i + 1] += first[i];
    pieces = Column<ShortPiece>(all.size());
    long_sizes.clear();
    std::vector<std::uint32_t> next(first.data(), first.data() + centers.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Piece& piece = all[i];
      const std::uint32_t at = next[home[i]]++;
      const std::uint64_t size = piece.end - piece.begin;
      if (size >= kLong) long_sizes.emplace_back(at, size);
      pieces[at] = {piece.begin, piece.from, piece.to,
                    size < kLong ? static_cast<std::uint32_t>(size) : kLong, piece.placement};
    }
    std::sort(long_sizes.begin(), long_sizes.end());
  }

  std::size_t centers_below(Address address) const noexcept {
    return static_cast<std::size_t>(
        std::lower_bound(centers.data(), centers.data() + centers.size(), address) -
        centers.data());
  }

  std::uint64_t size_of(std::size_t piece) const noexcept {
    if (pieces[piece].size != kLong) return pieces[piece].size;
    return std::lower_bound(long_sizes.begin(), long_sizes.end(),
                            std::pair(static_cast<std::uint32_t>(piece), std::uint64_t{0}))
        ->second;
  }

  /// The piece of a center that exists at `time`, if it holds the address.
  const ShortPiece* find_at(std::size_t center, Address address,
                            std::uint64_t time) const noexcept {
    const ShortPiece* const begin = pieces.data() + first[center];
    const ShortPiece* const end = pieces.data() + first[center + 1];
    const ShortPiece* const after = std::upper_bound(
        begin, end, time, [](std::uint64_t t, const ShortPiece& piece) { return t < piece.from; });
    if (after == begin) return nullptr;
    const ShortPiece* const piece = after - 1;
    const bool holds =
        time < piece->to &&
        address - piece->begin < size_of(static_cast<std::size_t>(piece - pieces.data()));
    return holds ? piece : nullptr;
  }

  const ShortPiece* find(Address address, std::uint64_t time) const noexcept {
    if (centers.empty()) return nullptr;
    const SearchPayload payload{first.data(), centers.data()};
    const std::size_t after = perfmap::search().one(search_tree.levels(), payload, address);
    // Most pieces have one center: the last at or below the address, or the first above it.
    const ShortPiece* piece = after == 0 ? nullptr : find_at(after - 1, address, time);
    if (piece == nullptr && after < centers.size()) piece = find_at(after, address, time);
    return piece == nullptr && any_wide ? find_wide(after, address, time) : piece;
  }

  /// Goes down the tree to between centers `after` - 1 and `after`.
  const ShortPiece* find_wide(std::size_t after, Address address,
                              std::uint64_t time) const noexcept {
    std::size_t step = std::bit_floor(centers.size());
    for (std::size_t number = step; step != 0; step /= 2) {
      if (number <= centers.size() && wide[number - 1]) {
        if (const ShortPiece* const piece = find_at(number - 1, address, time)) return piece;
      }
      number = number <= after ? number + step / 2 : number - step / 2;
    }
    return nullptr;
  }

  std::optional<CodeAt> code_of(const ShortPiece& piece) const noexcept {
    CodeAt code;
    const std::uint64_t offset = offsets[piece.placement];
    code.placed = offset & ~Placements::kMove;
    const auto record = dump.record_at(code.placed);
    if (!record) return std::nullopt;
    if ((offset & Placements::kMove) != 0) {
      const auto move = decode_move(*record);
      if (!move) return std::nullopt;
      const auto found = std::lower_bound(
          moves.begin(), moves.end(), piece.placement,
          [](const Pieces::Move& m, std::uint32_t wanted) { return m.placement < wanted; });
      code.range = move->range;
      code.load = offsets[found->load];
    } else {
      const auto load = decode_load(*record);
      if (!load) return std::nullopt;
      code.range = load->range;
      code.load = offset;
    }
    code.since = piece.from;
    code.until = piece.to;
    return code;
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

std::optional<CodeAt> Timeline::find(Address address, std::uint64_t time) const noexcept {
  const ShortPiece* const piece = state_->find(address, std::min(time, kEnd - 1));
  return piece == nullptr ? std::nullopt : state_->code_of(*piece);
}

void Timeline::for_each_at(std::uint64_t time,
                           const std::function<void(const PlacedCode&)>& visit) const {
  time = std::min(time, kEnd - 1);
  const State& state = *state_;
  std::vector<std::uint32_t> there;
  for (std::size_t i = 0; i < state.pieces.size(); ++i) {
    const ShortPiece& piece = state.pieces[i];
    if (piece.from <= time && time < piece.to) there.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(there.begin(), there.end(), [&](std::uint32_t a, std::uint32_t b) {
    return state.pieces[a].begin < state.pieces[b].begin;
  });
  for (const std::uint32_t i : there) {
    if (const auto code = state.code_of(state.pieces[i])) {
      visit({{state.pieces[i].begin, state.size_of(i)}, *code});
    }
  }
}

std::uint64_t Timeline::load_count() const noexcept {
  return state_->offsets.size() - state_->moves_seen;
}
std::uint64_t Timeline::move_count() const noexcept { return state_->moves.size(); }

Result<Growth> Timeline::refresh(Diagnostics& problems) {
  Result<Growth> growth = state_->dump.refresh();
  if (growth && *growth != Growth::unchanged) state_->build(problems);
  return growth;
}

}  // namespace perfmap
