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

/// What puts code somewhere: the LOAD and MOVE records of a dump, in the order in which they count.
struct CodeEvents {
  MmapVector<std::uint64_t> time;
  MmapVector<std::uint64_t> begin;
  MmapVector<std::uint64_t> end;     ///< 0: the end of the address space
  MmapVector<std::uint64_t> offset;  ///< of the record, and flags
  std::uint64_t moves = 0;
  /// For each placement by a MOVE the placement that loaded the code, ascending by the first; a
  /// MOVE of what was not there has none.
  struct Move {
    std::uint32_t placement;
    std::uint32_t load;
    Address from;  ///< where the code was
  };
  std::vector<Move> moved;
  /// MOVEs of more or fewer bytes than were loaded, by offset: only those that both have count.
  struct OddMove {
    std::uint64_t offset;
    std::uint64_t size;  ///< what counts
  };
  std::vector<OddMove> odd_moves;

  static constexpr std::uint64_t kMove = std::uint64_t{1} << 63;   ///< the record is a MOVE
  static constexpr std::uint64_t kEmpty = std::uint64_t{1} << 62;  ///< its size is 0

  std::size_t count() const noexcept { return time.size(); }
  bool is_move(std::size_t i) const noexcept { return (offset[i] & kMove) != 0; }
  std::uint64_t record(std::size_t i) const noexcept { return offset[i] & ~(kMove | kEmpty); }
};

/// Reads them, and sorts them by time where the file does not.
CodeEvents read_placements(const Jitdump& dump, const std::optional<TimeConversion>& conversion,
                           Diagnostics& problems);

/// A rectangle of addresses and time that belongs to one placement. Its addresses are borders: see
/// Pieces.
struct CodeLifetime {
  std::uint64_t from;
  std::uint64_t to;  ///< Timeline::kEnd: nothing ended it
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t placement;
};

/// The rectangles of a timeline. They do not overlap, and their times of beginning ascend.
struct CodeLifetimes {
  std::vector<CodeLifetime> all;
  /// Every address at which some placement begins or ends, ascending; pieces have their numbers.
  /// The last one may be the end of the address space, which is written 0.
  MmapVector<Address> borders;
};

/// Cuts addresses and time into pieces. O(n log n) whatever overlaps; at most three a placement.
CodeLifetimes make_pieces(const CodeEvents& placements);

/// The pieces of a timeline, to be asked by address and time.
///
/// Pieces hang on centers: addresses such that every piece has one in its range, and most have only
/// one. Where a piece has several it hangs on the highest of a balanced tree over all centers, so
/// that whoever holds an address hangs on the path to it. The pieces of one center all hold it, so
/// no two of them exist at the same time: one of them at most can hold an address at a time. (An
/// interval tree in one direction, a sorted list in the other.)
///
/// What a look-up costs is cache misses. So a center's newest piece lies where the center's number
/// says, in half a cache line with all that an answer needs; only older ones are searched for. How
/// far the pieces of a center reach is kept in a byte of its own, so that other centers on the path
/// are asked only where they may know.
class LifetimeTree {
 public:
  /// Offsets of records share their words with other things.
  static constexpr std::uint64_t kMaxOffset = (std::uint64_t{1} << 46) - 1;

  struct Found {
    AddressRange range;
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t record;  ///< the offset of what placed it
    bool moved;            ///< that is a MOVE
    bool whole;            ///< `range` is the range of its record
  };

  LifetimeTree() = default;
  LifetimeTree(const CodeEvents& placements, const CodeLifetimes& pieces);

  std::optional<Found> find(Address address, std::uint64_t time) const noexcept;

  /// As find(), for kSearchGroup of them, whose cache misses overlap.
  void find_group(const std::uint64_t* addresses, const std::uint64_t* times,
                  std::optional<Found>* answers) const noexcept;

  /// What exists at `time`, by address. O(n log n).
  std::vector<Found> all_at(std::uint64_t time) const;

 private:
  /// Begins `below` bytes below its center; see kBelowShift.
  struct Kept {
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t record;  // kMaxOffset, then flags, then bytes below the center
    std::uint32_t size;
    /// Of the newest of a center: where the older ones are, 0 for none. Of the oldest: how many.
    std::uint32_t older;
  };
  /// What does not fit there.
  struct Long {
    std::uint32_t piece;
    AddressRange range;
  };
  struct Homes;
  /// A search among the pieces of a center for the one that exists at some time: if any does, it is
  /// among `count` from `last` on.
  struct Candidate {
    const Kept* last;
    std::size_t count;
    std::size_t center;

    bool halve(std::uint64_t time) noexcept;
  };

  static constexpr std::uint64_t kMoved = kMaxOffset + 1;
  static constexpr std::uint64_t kWhole = kMoved << 1;
  static constexpr unsigned kBelowShift = 48;
  static constexpr std::uint64_t kFarBelow = 0xffff;  // see Long, as for kLongSize
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
  /// Who holds an address that is behind so many centers.
  std::optional<Found> find_from(std::size_t gap, Address address,
                                 std::uint64_t time) const noexcept;
  std::optional<Found> find_on_path(std::size_t gap, Address address,
                                    std::uint64_t time) const noexcept;
  bool reaches(std::size_t center, std::size_t gap) const noexcept;
  Found found(const Kept& piece, std::size_t center) const noexcept;

  MmapVector<std::uint64_t> centers_;
  SearchTree search_tree_;
  /// Each center's newest, in the order of centers; then the older ones, center by center, the
  /// oldest first.
  MmapVector<Kept> pieces_;
  /// How many gaps between centers the pieces of a center reach into, below and above those next to
  /// it, each as a logarithm in four bits.
  MmapVector<std::uint8_t> reach_;
  std::vector<Long> long_;  // by piece
};

}  // namespace perfmap
