#pragma once

#include <cstdint>
#include <span>

#include "index/columns.hpp"
#include "index/reuse.hpp"
#include "index/search.hpp"
#include "perfmap/index.hpp"

namespace perfmap {

/// Which of two entries answers where both do.
class Precedence {
 public:
  Precedence(Overlap overlap, std::span<const Map> maps) noexcept
      : overlap_(overlap), maps_(maps) {}

  /// An entry as precedence sees it. `size` is the whole entry's, and only matters for `inner`.
  struct Rank {
    std::uint64_t size;
    std::uint64_t line;
  };
  bool wins(const Rank& a, const Rank& b) const noexcept {
    if (overlap_ == Overlap::inner && a.size != b.size) return a.size < b.size;
    return overlap_ == Overlap::first ? a.line < b.line : a.line > b.line;
  }
  /// The rank of the entry of a line: reads the line where the policy asks for sizes.
  Rank rank_of(std::uint64_t line) const noexcept;
  std::span<const Map> maps() const noexcept { return maps_; }

 private:
  Overlap overlap_;
  std::span<const Map> maps_;
};

/// An immutable partition: segments that ascend and do not overlap, with a search tree above them.
/// The size of a segment is short, too: a longer one ends where the next begins or its entry ends.
class Run {
 public:
  Run() = default;
  /// Takes sorted, overlap-free columns.
  explicit Run(Columns segments, ReusedAddresses reused = {});

  /// What the entries of these segments, and those that they hide, had by several names.
  const ReusedAddresses& reused() const noexcept { return reused_; }
  std::size_t count() const noexcept { return segments_.count(); }
  Segment at(std::size_t position, std::span<const Map> maps) const noexcept;

  /// Who answers for `address`; UINT64_MAX where nobody does. O(log n).
  std::uint64_t find(std::uint64_t address, std::span<const Map> maps) const noexcept;
  /// find() for many addresses.
  void find_all(std::span<const Address> addresses, std::uint64_t* lines,
                std::span<const Map> maps) const noexcept;

 private:
  std::size_t gallop(std::size_t from, std::uint64_t address) const noexcept;
  SearchPayload payload() const noexcept { return {segments_.size.data(), segments_.line.data()}; }
  void prefetch_answers(const std::size_t* positions) const noexcept;
  std::uint64_t answer(std::size_t after, std::uint64_t address,
                       std::span<const Map> maps) const noexcept;
  std::uint64_t last_at(std::size_t position, std::span<const Map> maps) const noexcept;

  Columns segments_;
  ReusedAddresses reused_;
  SearchTree tree_;  // over segments_.begin
};

/// Makes a partition of sorted columns by precedence. O(n log n) whatever overlaps.
Run make_run(Columns sorted, const Precedence& precedence);

/// The partition of both. O(a + b).
Run merge_runs(const Run& a, const Run& b, const Precedence& precedence);

}  // namespace perfmap
