// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/mmap_vector.hpp"
#include "map/segments.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// The LOAD and MOVE records of a dump ("placements"), as columns, in the order in which they take
/// effect.
struct CodeEvents {
  MmapVector<std::uint64_t> time;
  MmapVector<std::uint64_t> begin;
  MmapVector<std::uint64_t> end;     ///< 0: end of the address space
  MmapVector<std::uint64_t> offset;  ///< of the record, with flags
  std::uint64_t moves = 0;
  /// For each placement by a MOVE, the placement that loaded the code; ascending by the first. A
  /// MOVE of code that was not there has none.
  struct Move {
    std::uint32_t placement;
    std::uint32_t load;
    Address from;  ///< where the code was
  };
  std::vector<Move> moved;
  /// MOVEs whose size differs from that of their LOAD, by offset: the smaller size counts.
  struct OddMove {
    std::uint64_t offset;
    std::uint64_t size;  ///< the size that counts
  };
  std::vector<OddMove> odd_moves;

  static constexpr std::uint64_t kMove = std::uint64_t{1} << 63;   ///< the record is a MOVE
  static constexpr std::uint64_t kEmpty = std::uint64_t{1} << 62;  ///< its size is 0

  std::size_t count() const noexcept { return time.size(); }
  bool is_move(std::size_t i) const noexcept { return (offset[i] & kMove) != 0; }
  std::uint64_t record(std::size_t i) const noexcept { return offset[i] & ~(kMove | kEmpty); }
};

/// Reads the placements, and sorts them by time if the file is not sorted.
CodeEvents read_placements(const Jitdump& dump, const std::optional<TimeConversion>& conversion,
                           Diagnostics& problems);

/// A rectangle of addresses and time ("piece") that belongs to one placement. Its addresses are
/// indexes into CodeLifetimes::borders.
struct CodeLifetime {
  std::uint64_t from;
  std::uint64_t to;  ///< Timeline::kEnd: it never ends
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t placement;
};

/// The rectangles of a timeline. They do not overlap, and are sorted by start time.
struct CodeLifetimes {
  std::vector<CodeLifetime> all;
  /// Every address at which a placement begins or ends, ascending; pieces refer to them by index.
  /// The last may be the end of the address space, written as 0.
  MmapVector<Address> borders;
};

/// Cuts addresses and time into pieces. O(n log n) for any overlaps; at most three pieces per
/// placement.
CodeLifetimes make_pieces(const CodeEvents& placements);

/// The pieces of a timeline, for queries by address and time: an interval tree over addresses, with
/// a list sorted by time at each node.
///
/// Each piece is stored at a center: an address in its range. Centers are chosen such that every
/// piece contains one, and most contain only one. A piece that contains several is stored at the
/// one that is highest in a balanced tree over all centers. So all pieces that contain an address
/// are stored on the path from that address to the root. All pieces of one center contain the
/// center, so no two of them exist at the same time, and at most one of them can match a query.
///
/// The cost of a look-up is its cache misses. So a center's newest piece is stored at the center's
/// number, in half a cache line, with everything an answer needs; only older pieces need a search.
/// The reach of each center's pieces is kept in a byte of its own, so that other centers on the
/// path are searched only if they can match.
class LifetimeTree {
 public:
  /// Record offsets share their words with flags and other bits.
  static constexpr std::uint64_t kMaxOffset = (std::uint64_t{1} << 46) - 1;

  struct Found {
    AddressRange range;
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t record;  ///< offset of the record that placed it
    bool moved;            ///< that record is a MOVE
    bool whole;            ///< `range` equals the range of the record
  };

  LifetimeTree() = default;
  LifetimeTree(const CodeEvents& placements, const CodeLifetimes& pieces);

  std::optional<Found> find(Address address, std::uint64_t time) const noexcept;

  /// Like find(), for kSearchGroup queries, whose cache misses overlap.
  void find_group(const std::uint64_t* addresses, const std::uint64_t* times,
                  std::optional<Found>* answers) const noexcept;

  /// All code that exists at `time`, by address. O(n log n).
  std::vector<Found> all_at(std::uint64_t time) const;

 private:
  /// A piece in compact form. It begins `below` bytes below its center; see kBelowShift.
  struct Kept {
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t record;  // from bit 0: offset (kMaxOffset), flags, bytes below the center
    std::uint32_t size;
    /// In the newest piece of a center: the index of the oldest piece, or 0. In the oldest: the
    /// number of older pieces.
    std::uint32_t older;
  };
  /// The range of a piece that does not fit into Kept.
  struct Long {
    std::uint32_t piece;
    AddressRange range;
  };
  struct Homes;
  /// A binary search among the pieces of a center for the one that exists at a time: if there is
  /// one, it is among the `count` pieces from `last` on.
  struct Candidate {
    const Kept* last;
    std::size_t count;
    std::size_t center;

    bool halve(std::uint64_t time) noexcept;
  };

  static constexpr std::uint64_t kMoved = kMaxOffset + 1;
  static constexpr std::uint64_t kWhole = kMoved << 1;
  static constexpr unsigned kBelowShift = 48;
  static constexpr std::uint64_t kFarBelow = 0xffff;  // marks a Long, like kLongSize
  static constexpr std::uint32_t kLongSize = UINT32_MAX;

  void choose_centers(const CodeLifetimes& pieces, MmapVector<std::uint32_t>& centers_below);
  Homes find_homes(const CodeLifetimes& pieces, const MmapVector<std::uint32_t>& centers_below);
  void hang(const CodeEvents& placements, const CodeLifetimes& pieces, const Homes& homes);
  Kept keep(const CodeEvents& placements, const CodeLifetimes& pieces, const CodeLifetime& piece,
            std::size_t center, std::size_t at);

  AddressRange range_of(const Kept& piece, std::size_t center) const noexcept;
  static bool exists(const Kept& piece, std::uint64_t time) noexcept {
    return piece.from <= time && time < piece.to;
  }
  Candidate candidate_of(std::size_t center, std::uint64_t time) const noexcept;
  const Kept& at(std::size_t center, std::uint64_t time) const noexcept;
  bool holds(const Kept& piece, std::size_t center, Address address,
             std::uint64_t time) const noexcept;
  /// The code at an address that lies after `gap` centers.
  std::optional<Found> find_from(std::size_t gap, Address address,
                                 std::uint64_t time) const noexcept;
  std::optional<Found> find_on_path(std::size_t gap, Address address,
                                    std::uint64_t time) const noexcept;
  bool reaches(std::size_t center, std::size_t gap) const noexcept;
  Found found(const Kept& piece, std::size_t center) const noexcept;

  MmapVector<std::uint64_t> centers_;
  SearchTree search_tree_;
  /// First each center's newest piece, in the order of the centers. Then the older ones, center by
  /// center, oldest first.
  MmapVector<Kept> pieces_;
  /// How many gaps between centers the pieces of a center reach into, beyond the two next to it:
  /// below and above, each as a logarithm in four bits.
  MmapVector<std::uint8_t> reach_;
  std::vector<Long> long_;  // by index of the piece
};

}  // namespace perfmap
