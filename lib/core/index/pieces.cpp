#include "index/pieces.hpp"

#include <algorithm>

#include "index/columns.hpp"
#include "index/ordered_bits.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;

/// All addresses at which some placement begins or ends, numbered in ascending order.
class Borders {
 public:
  explicit Borders(const Placements& placements) : of_(placements.count() * 2) {
    if (of_.empty()) return;
    Columns ends;
    ends.make_room(of_.size());
    for (std::size_t i = 0; i < placements.count(); ++i) {
      ends.append(placements.begin[i], 1, 2 * i);
      if (placements.end[i] != 0) ends.append(placements.end[i], 1, 2 * i + 1);
    }
    sort_columns(ends);
    for (std::size_t i = 0; i < ends.count(); ++i) {
      if (addresses_.empty() || addresses_.back() != ends.begin[i]) {
        addresses_.push_back(ends.begin[i]);
      }
      of_[ends.line[i]] = static_cast<std::uint32_t>(addresses_.size() - 1);
    }
    const std::size_t numbered = addresses_.size();
    for (std::size_t i = 0; i < placements.count(); ++i) {
      if (placements.end[i] != 0) continue;
      if (addresses_.size() == numbered) addresses_.push_back(0);
      of_[2 * i + 1] = static_cast<std::uint32_t>(numbered);
    }
  }
  std::size_t count() const noexcept { return addresses_.size(); }
  Column<Address> take_addresses() noexcept { return std::move(addresses_); }
  std::uint32_t begin_of(std::size_t placement) const noexcept { return of_[placement * 2]; }
  std::uint32_t end_of(std::size_t placement) const noexcept { return of_[placement * 2 + 1]; }

 private:
  Column<Address> addresses_;
  Column<std::uint32_t> of_;
};

/// The address space at one time, which goes through all placements.
class Sweep {
 public:
  explicit Sweep(const Placements& placements)
      : placements_(placements),
        borders_(placements),
        begins_(borders_.count() + 1),
        piece_at_(borders_.count() + 1),
        first_of_(placements.moves == 0 ? 0 : placements.count(), kNobody),
        now_(first_of_.size(), kNobody) {
    pieces_.all.reserve(placements.count() + placements.count() / 2);
  }

  Pieces run() {
    for (std::uint32_t i = 0; i < placements_.count(); ++i) {
      if (placements_.is_move(i)) {
        move(i);
      } else {
        place(i);
        if (has_moves()) now_[i] = i;
      }
    }
    auto& all = pieces_.all;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const Piece& piece) { return piece.from == piece.to; }),
              all.end());
    pieces_.borders = borders_.take_addresses();
    return std::move(pieces_);
  }

 private:
  /// The neighbours of a piece among those of its placement that are there. Only a MOVE asks.
  struct Link {
    std::uint32_t previous = kNobody;
    std::uint32_t next = kNobody;
  };
  bool has_moves() const noexcept { return !first_of_.empty(); }

  void open(std::uint32_t begin, std::uint32_t end, std::uint32_t placement, std::uint64_t time) {
    const auto piece = static_cast<std::uint32_t>(pieces_.all.size());
    pieces_.all.push_back({time, Timeline::kEnd, begin, end, placement});
    begins_.insert(begin);
    piece_at_[begin] = piece;
    if (!has_moves()) return;
    std::uint32_t& first = first_of_[placement];
    if (first != kNobody) links_[first].previous = piece;
    links_.push_back({kNobody, first});
    first = piece;
  }

  void close(std::uint32_t piece, std::uint64_t time) {
    pieces_.all[piece].to = time;
    begins_.erase(pieces_.all[piece].begin);
    if (!has_moves()) return;
    const Link link = links_[piece];
    if (link.next != kNobody) links_[link.next].previous = link.previous;
    if (link.previous != kNobody) {
      links_[link.previous].next = link.next;
    } else {
      first_of_[pieces_.all[piece].placement] = link.next;
    }
  }

  /// Ends whatever lies in [begin, end); what sticks out of it goes on as pieces of its own.
  void clear(std::uint32_t begin, std::uint32_t end, std::uint64_t time) {
    const std::size_t before = begins_.at_most(begin);
    if (before != OrderedBits::kNone && before != begin) {
      const std::uint32_t piece = piece_at_[before];
      if (pieces_.all[piece].end > begin) cut(piece, begin, end, time);
    }
    for (std::size_t at = begins_.at_least(begin); at < end; at = begins_.at_least(begin)) {
      cut(piece_at_[at], begin, end, time);
    }
  }

  void cut(std::uint32_t piece, std::uint32_t begin, std::uint32_t end, std::uint64_t time) {
    const Piece whole = pieces_.all[piece];
    close(piece, time);
    if (whole.begin < begin) open(whole.begin, begin, whole.placement, time);
    if (whole.end > end) open(end, whole.end, whole.placement, time);
  }

  void place(std::uint32_t placement) {
    const std::uint32_t begin = borders_.begin_of(placement);
    const std::uint32_t end = borders_.end_of(placement);
    if (begin == end) return;
    clear(begin, end, placements_.time[placement]);
    open(begin, end, placement, placements_.time[placement]);
  }

  void move(std::uint32_t placement) {
    if (next_move_ == placements_.moved.size()) return;
    const Placements::Move& move = placements_.moved[next_move_];
    if (move.placement != placement) return;
    ++next_move_;
    std::uint32_t& now = now_[move.load];
    while (first_of_[now] != kNobody) close(first_of_[now], placements_.time[placement]);
    place(placement);
    now = placement;
  }

  const Placements& placements_;
  Borders borders_;
  OrderedBits begins_;                   // where a piece begins now
  std::vector<std::uint32_t> piece_at_;  // which one, for the borders in begins_
  std::vector<std::uint32_t> first_of_;  // of each placement, its first piece now
  std::vector<Link> links_;              // of each piece, where there are moves
  std::vector<std::uint32_t> now_;       // of each LOAD, where its code is
  std::size_t next_move_ = 0;            // in Placements::moved
  Pieces pieces_;
};

}  // namespace

Pieces make_pieces(const Placements& placements) { return Sweep(placements).run(); }

}  // namespace perfmap
