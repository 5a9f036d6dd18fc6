#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/column.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// What puts code somewhere: the LOAD and MOVE records of a dump, in the order in which they count.
struct Placements {
  Column<std::uint64_t> time;
  Column<std::uint64_t> begin;
  Column<std::uint64_t> end;     ///< 0: the end of the address space
  Column<std::uint64_t> offset;  ///< of the record, and flags
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
Placements read_placements(const Jitdump& dump, const std::optional<TimeConversion>& conversion,
                           Diagnostics& problems);

/// A rectangle of addresses and time that belongs to one placement. Its addresses are borders: see
/// Pieces.
struct Piece {
  std::uint64_t from;
  std::uint64_t to;  ///< Timeline::kEnd: nothing ended it
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t placement;
};

/// The rectangles of a timeline. They do not overlap, and their times of beginning ascend.
struct Pieces {
  std::vector<Piece> all;
  /// Every address at which some placement begins or ends, ascending; pieces have their numbers.
  /// The last one may be the end of the address space, which is written 0.
  Column<Address> borders;
};

/// Cuts addresses and time into pieces. O(n log n) whatever overlaps; at most three a placement.
Pieces make_pieces(const Placements& placements);

}  // namespace perfmap
