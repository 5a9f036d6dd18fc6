// SPDX-License-Identifier: MIT
#include "jitdump/lifetimes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "map/segments.hpp"

namespace perfmap {

namespace {

/// A set of numbers below a bound: a bitmap with a summary bit for each 64 bits of the level below.
/// Each operation looks at one word per level; 16 million numbers need four levels.
class OrderedBits {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit OrderedBits(std::size_t bound) {
    do {
      bound = bound / 64 + 1;
      levels_.emplace_back(bound);
    } while (bound > 1);
  }

  void insert(std::size_t number) noexcept {
    for (auto& level : levels_) {
      level[number / 64] |= bit(number);
      number /= 64;
    }
  }
  void erase(std::size_t number) noexcept {
    for (auto& level : levels_) {
      level[number / 64] &= ~bit(number);
      if (level[number / 64] != 0) return;
      number /= 64;
    }
  }
  /// The largest member that is at most `number`, or kNone.
  std::size_t at_most(std::size_t number) const noexcept {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const std::uint64_t word = levels_[i][number / 64] & ((bit(number) - 1) | bit(number));
      if (word != 0) return descend_last(i, number / 64 * 64 + last_bit(word));
      if (number / 64 == 0) return kNone;
      number = number / 64 - 1;
    }
    return kNone;
  }
  /// The smallest member that is at least `number`, or kNone. `number` is at most the bound.
  std::size_t at_least(std::size_t number) const noexcept {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (number / 64 >= levels_[i].size()) return kNone;
      const std::uint64_t word = levels_[i][number / 64] & ~(bit(number) - 1);
      if (word != 0) return descend_first(i, number / 64 * 64 + first_bit(word));
      number = number / 64 + 1;
    }
    return kNone;
  }

 private:
  static std::uint64_t bit(std::size_t number) noexcept { return std::uint64_t{1} << number % 64; }
  static std::size_t first_bit(std::uint64_t word) noexcept {
    return static_cast<std::size_t>(__builtin_ctzll(word));
  }
  static std::size_t last_bit(std::uint64_t word) noexcept {
    return static_cast<std::size_t>(63 - __builtin_clzll(word));
  }
  std::size_t descend_first(std::size_t level, std::size_t number) const noexcept {
    while (level-- > 0) number = number * 64 + first_bit(levels_[level][number]);
    return number;
  }
  std::size_t descend_last(std::size_t level, std::size_t number) const noexcept {
    while (level-- > 0) number = number * 64 + last_bit(levels_[level][number]);
    return number;
  }

  std::vector<std::vector<std::uint64_t>> levels_;  // from the bottom
};

constexpr std::uint32_t kNone = UINT32_MAX;

/// All addresses at which a placement begins or ends, numbered in ascending order.
class Borders {
 public:
  explicit Borders(const CodeEvents& placements) : of_(placements.count() * 2) {
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
  MmapVector<Address> take_addresses() noexcept { return std::move(addresses_); }
  std::uint32_t begin_of(std::size_t placement) const noexcept { return of_[placement * 2]; }
  std::uint32_t end_of(std::size_t placement) const noexcept { return of_[placement * 2 + 1]; }

 private:
  MmapVector<Address> addresses_;
  MmapVector<std::uint32_t> of_;
};

/// Sweeps over time through all placements and keeps the state of the address space.
class Sweep {
 public:
  explicit Sweep(const CodeEvents& placements)
      : placements_(placements),
        borders_(placements),
        begins_(borders_.count() + 1),
        piece_at_(borders_.count() + 1),
        first_of_(placements.moves == 0 ? 0 : placements.count(), kNone),
        now_(first_of_.size(), kNone) {
    pieces_.all.reserve(placements.count() + placements.count() / 2);
  }

  CodeLifetimes run() {
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
                             [](const CodeLifetime& piece) { return piece.from == piece.to; }),
              all.end());
    pieces_.borders = borders_.take_addresses();
    return std::move(pieces_);
  }

 private:
  /// A doubly linked list of the open pieces of one placement. Only kept if there are MOVEs.
  struct Link {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };
  bool has_moves() const noexcept { return !first_of_.empty(); }

  void open(std::uint32_t begin, std::uint32_t end, std::uint32_t placement, std::uint64_t time) {
    const auto piece = static_cast<std::uint32_t>(pieces_.all.size());
    pieces_.all.push_back({time, Timeline::kEnd, begin, end, placement});
    begins_.insert(begin);
    piece_at_[begin] = piece;
    if (!has_moves()) return;
    std::uint32_t& first = first_of_[placement];
    if (first != kNone) links_[first].previous = piece;
    links_.push_back({kNone, first});
    first = piece;
  }

  void close(std::uint32_t piece, std::uint64_t time) {
    pieces_.all[piece].to = time;
    begins_.erase(pieces_.all[piece].begin);
    if (!has_moves()) return;
    const Link link = links_[piece];
    if (link.next != kNone) links_[link.next].previous = link.previous;
    if (link.previous != kNone) {
      links_[link.previous].next = link.next;
    } else {
      first_of_[pieces_.all[piece].placement] = link.next;
    }
  }

  /// Ends everything in [begin, end). Parts that stick out continue as new pieces.
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
    const CodeLifetime whole = pieces_.all[piece];
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
    const CodeEvents::Move& move = placements_.moved[next_move_];
    if (move.placement != placement) return;
    ++next_move_;
    std::uint32_t& now = now_[move.load];
    while (first_of_[now] != kNone) close(first_of_[now], placements_.time[placement]);
    place(placement);
    now = placement;
  }

  const CodeEvents& placements_;
  Borders borders_;
  OrderedBits begins_;                   // where an open piece begins
  std::vector<std::uint32_t> piece_at_;  // the open piece, for borders in begins_
  std::vector<std::uint32_t> first_of_;  // per placement, its first open piece
  std::vector<Link> links_;              // per piece, if there are MOVEs
  std::vector<std::uint32_t> now_;       // per LOAD, the placement of its code now
  std::size_t next_move_ = 0;            // index in CodeEvents::moved
  CodeLifetimes pieces_;
};

/// Among the numbers first..last, counted from 1, the one highest in an implicit balanced tree: the
/// more zero bits a number ends in, the higher it is.
std::size_t highest(std::size_t first, std::size_t last) noexcept {
  const std::size_t above = (first - 1) ^ last;
  return last & ~(std::bit_floor(above) - 1);
}

/// A distance as a rounded-up logarithm in four bits: 0, 1, 2, 3-4, 5-8, ...
unsigned short_distance(std::size_t distance) noexcept {
  if (distance < 2) return static_cast<unsigned>(distance);
  return std::min(static_cast<unsigned>(std::bit_width(distance - 1)) + 1, 15u);
}

}  // namespace

CodeLifetimes make_pieces(const CodeEvents& placements) { return Sweep(placements).run(); }

std::optional<LifetimeTree::Found> LifetimeTree::find(Address address,
                                                      std::uint64_t time) const noexcept {
  if (centers_.empty()) return std::nullopt;
  const std::size_t gap =
      search().one_of(search_tree_.levels(), pieces_.data(), sizeof(Kept), address);
  return find_from(gap, address, time);
}

void LifetimeTree::find_group(const std::uint64_t* addresses, const std::uint64_t* times,
                              std::optional<Found>* answers) const noexcept {
  std::size_t gaps[kSearchGroup];
  if (centers_.empty()) return std::fill(answers, answers + kSearchGroup, std::nullopt);
  search().group(search_tree_.levels(), addresses, gaps);
  for (const std::size_t gap : gaps) __builtin_prefetch(pieces_.data() + gap - (gap != 0 ? 1 : 0));
  for (std::size_t i = 0; i < kSearchGroup; ++i) {
    answers[i] = find_from(gaps[i], addresses[i], times[i]);
  }
}

std::optional<LifetimeTree::Found> LifetimeTree::find_from(std::size_t gap, Address address,
                                                           std::uint64_t time) const noexcept {
  if (gap != 0) {
    const Kept& piece = at(gap - 1, time);
    if (holds(piece, gap - 1, address, time)) return found(piece, gap - 1);
  }
  return find_on_path(gap, address, time);
}

/// Searches the other centers on the path from the gap to the root of the tree, interleaved: each
/// step of each search waits for memory, so the waits overlap.
std::optional<LifetimeTree::Found> LifetimeTree::find_on_path(std::size_t gap, Address address,
                                                              std::uint64_t time) const noexcept {
  std::array<Candidate, 64> on_path;
  std::size_t count = 0;
  for (std::size_t step = 1; step <= centers_.size(); step *= 2) {
    const std::size_t center = (gap & ~(2 * step - 1)) + step - 1;
    if (center >= centers_.size() || !reaches(center, gap)) continue;
    __builtin_prefetch(pieces_.data() + center);
    on_path[count++] = {nullptr, 0, center};
  }
  const std::span<Candidate> all(on_path.data(), count);
  for (Candidate& one : all) one = candidate_of(one.center, time);
  for (bool more = true; more;) {
    more = false;
    for (Candidate& one : all) more = one.halve(time) || more;
  }
  for (const Candidate& one : all) {
    if (holds(*one.last, one.center, address, time)) return found(*one.last, one.center);
  }
  return std::nullopt;
}

/// Whether a piece of a center reaches into a gap other than the one right after the center.
bool LifetimeTree::reaches(std::size_t center, std::size_t gap) const noexcept {
  const unsigned reach = reach_[center];
  if (gap > center) return gap - center > 1 && short_distance(gap - center - 1) <= reach >> 4;
  return short_distance(center + 1 - gap) <= (reach & 0xf);
}

/// One step of a binary search; returns whether another step is needed.
bool LifetimeTree::Candidate::halve(std::uint64_t time) noexcept {
  if (count <= 1) return false;
  const std::size_t half = count / 2;
  last = last[half].from <= time ? last + half : last;
  count -= half;
  __builtin_prefetch(last + count / 2);
  return true;
}

LifetimeTree::Candidate LifetimeTree::candidate_of(std::size_t center,
                                                   std::uint64_t time) const noexcept {
  const Kept& newest = pieces_[center];
  if (time >= newest.from || newest.older == 0) return {&newest, 1, center};
  const Kept& oldest = pieces_[newest.older];
  return {&oldest, oldest.older, center};
}

/// The piece of a center that exists at `time`, if there is one.
const LifetimeTree::Kept& LifetimeTree::at(std::size_t center, std::uint64_t time) const noexcept {
  Candidate candidate = candidate_of(center, time);
  while (candidate.halve(time)) {
  }
  return *candidate.last;
}

bool LifetimeTree::holds(const Kept& piece, std::size_t center, Address address,
                         std::uint64_t time) const noexcept {
  return exists(piece, time) && range_of(piece, center).contains(address);
}

AddressRange LifetimeTree::range_of(const Kept& piece, std::size_t center) const noexcept {
  const std::uint64_t below = piece.record >> kBelowShift;
  if (below != kFarBelow && piece.size != kLongSize) [[likely]] {
    return {centers_[center] - below, piece.size};
  }
  const auto at = static_cast<std::uint32_t>(&piece - pieces_.data());
  return std::lower_bound(long_.begin(), long_.end(), at,
                          [](const Long& a, std::uint32_t wanted) { return a.piece < wanted; })
      ->range;
}

LifetimeTree::Found LifetimeTree::found(const Kept& piece, std::size_t center) const noexcept {
  return {range_of(piece, center),
          piece.from,
          piece.to,
          piece.record & kMaxOffset,
          (piece.record & kMoved) != 0,
          (piece.record & kWhole) != 0};
}

std::vector<LifetimeTree::Found> LifetimeTree::all_at(std::uint64_t time) const {
  std::vector<Found> there;
  for (std::size_t center = 0; center < centers_.size(); ++center) {
    const Kept& piece = at(center, time);
    if (exists(piece, time)) there.push_back(found(piece, center));
  }
  std::sort(there.begin(), there.end(),
            [](const Found& a, const Found& b) { return a.range.begin < b.range.begin; });
  return there;
}

/// The center of each piece, and the number of pieces of each center.
struct LifetimeTree::Homes {
  std::vector<std::uint32_t> center_of;  // of each piece
  std::vector<std::uint32_t> first;      // prefix sums per center; one more at the end
};

LifetimeTree::LifetimeTree(const CodeEvents& placements, const CodeLifetimes& pieces) {
  MmapVector<std::uint32_t> centers_below;
  choose_centers(pieces, centers_below);
  hang(placements, pieces, find_homes(pieces, centers_below));
  std::sort(long_.begin(), long_.end(),
            [](const Long& a, const Long& b) { return a.piece < b.piece; });
  search_tree_ = SearchTree({centers_.data(), centers_.size()});
}

/// Greedy from the highest address down: a piece that contains no center yet makes its begin a
/// center. `centers_below` gets, for each border, the number of centers below it.
void LifetimeTree::choose_centers(const CodeLifetimes& pieces,
                                  MmapVector<std::uint32_t>& centers_below) {
  const std::size_t count = pieces.borders.size();
  std::vector<std::uint32_t> first_end(count, UINT32_MAX);  // of the pieces that begin at each
                                                            // border
  for (const CodeLifetime& piece : pieces.all) {
    first_end[piece.begin] = std::min(first_end[piece.begin], piece.end);
  }
  centers_below = MmapVector<std::uint32_t>(count);
  std::uint32_t center = UINT32_MAX - 1;
  for (std::size_t i = count; i-- > 0;) {
    if (first_end[i] > center) continue;
    center = static_cast<std::uint32_t>(i);
    centers_below[i] = 1;
  }
  std::uint32_t below = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (centers_below[i] != 0) centers_.push_back(pieces.borders[i]);
    below += std::exchange(centers_below[i], below);
  }
  centers_.shrink();
}

LifetimeTree::Homes LifetimeTree::find_homes(const CodeLifetimes& pieces,
                                             const MmapVector<std::uint32_t>& centers_below) {
  Homes homes{std::vector<std::uint32_t>(pieces.all.size()),
              std::vector<std::uint32_t>(centers_.size() + 1)};
  reach_ = MmapVector<std::uint8_t>(centers_.size());
  for (std::size_t i = 0; i < pieces.all.size(); ++i) {
    const CodeLifetime& piece = pieces.all[i];
    const std::size_t low = centers_below[piece.begin];
    const std::size_t after = centers_below[piece.end];
    const std::size_t home = highest(low + 1, after) - 1;
    const bool below = pieces.borders[piece.begin] != centers_[low];
    const unsigned down = short_distance(home - low + (below ? 1 : 0));
    const unsigned up = short_distance(after - home - 1);
    const unsigned reach = reach_[home];
    reach_[home] =
        static_cast<std::uint8_t>(std::max(reach & 0xf, down) | std::max(reach >> 4, up) << 4);
    homes.center_of[i] = static_cast<std::uint32_t>(home);
    ++homes.first[home + 1];
  }
  for (std::size_t i = 0; i < centers_.size(); ++i) homes.first[i + 1] += homes.first[i];
  return homes;
}

void LifetimeTree::hang(const CodeEvents& placements, const CodeLifetimes& pieces,
                        const Homes& homes) {
  pieces_ = MmapVector<Kept>(pieces.all.size());
  std::vector<std::uint32_t> hung(centers_.size());
  for (std::size_t i = 0; i < pieces.all.size(); ++i) {
    const std::size_t center = homes.center_of[i];
    const std::uint32_t count = homes.first[center + 1] - homes.first[center];
    // The newest piece of each center before this one is stored by center number, not here.
    const std::size_t older = centers_.size() + homes.first[center] - center;
    const std::uint32_t before = hung[center]++;
    const bool newest = before + 1 == count;
    const std::size_t at = newest ? center : older + before;
    pieces_[at] = keep(placements, pieces, pieces.all[i], center, at);
    if (newest && before != 0) pieces_[at].older = static_cast<std::uint32_t>(older);
    if (!newest && before == 0) pieces_[at].older = count - 1;
  }
}

LifetimeTree::Kept LifetimeTree::keep(const CodeEvents& placements, const CodeLifetimes& pieces,
                                      const CodeLifetime& piece, std::size_t center,
                                      std::size_t at) {
  const Address begin = pieces.borders[piece.begin];
  const Address end = pieces.borders[piece.end];
  const std::uint64_t below = std::min(centers_[center] - begin, kFarBelow);
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - begin, kLongSize));
  if (below == kFarBelow || size == kLongSize) {
    long_.push_back({static_cast<std::uint32_t>(at), {begin, end - begin}});
  }
  const std::size_t of = piece.placement;
  const bool whole = begin == placements.begin[of] && end == placements.end[of] &&
                     (placements.offset[of] & CodeEvents::kEmpty) == 0;
  const std::uint64_t flags =
      (placements.is_move(of) ? kMoved : 0) | (whole ? kWhole : 0) | below << kBelowShift;
  return {piece.from, piece.to, placements.record(of) | flags, size, 0};
}

}  // namespace perfmap
