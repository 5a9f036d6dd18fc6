// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mmap_vector.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// Sizes are kept in 32 bits. A larger one is stored as kTooLong and read from its line.
inline constexpr std::uint32_t kTooLong = UINT32_MAX;

constexpr std::uint32_t short_size(std::uint64_t size) noexcept {
  return size < kTooLong ? static_cast<std::uint32_t>(size) : kTooLong;
}

constexpr std::uint64_t kMapShift = 48;

/// Entries as columns (structure of arrays), 20 bytes each. `line` is an EntryRef::line, which
/// grows along the file and from map to map, so it also orders entries by age.
struct Columns {
  MmapVector<std::uint64_t> begin;
  MmapVector<std::uint32_t> size;  ///< see kTooLong; 0 is stored as 1
  MmapVector<std::uint64_t> line;

  std::size_t count() const noexcept { return begin.size(); }
  void make_room(std::size_t more) {
    begin.make_room(more);
    size.make_room(more);
    line.make_room(more);
  }
  /// Appends without growing: room must be reserved.
  void append(std::uint64_t at, std::uint64_t bytes, std::uint64_t of_line) noexcept {
    begin.append_unchecked(at);
    size.append_unchecked(short_size(bytes == 0 ? 1 : bytes));
    line.append_unchecked(of_line);
  }
  void shrink() noexcept {
    begin.shrink();
    size.shrink();
    line.shrink();
  }
};

/// The last address of an entry, or a part of one, that begins at `begin` and has this `size`. (The
/// end after it may be 2^64, which does not fit.)
inline std::uint64_t last_of(std::uint64_t begin, std::uint32_t size, std::uint64_t line,
                             std::span<const Map> maps) noexcept {
  if (size != kTooLong) return begin + (size - 1);
  const EntryRef hit{line};
  const auto entry = maps[hit.map()].entry_at(hit.offset());
  return entry ? std::max(begin, entry->range.last()) : begin;  // the line may be truncated by now
}

/// Reads the entries of map number `number` from `offset`, the start of line `line`, into `out`.
/// Returns the number of the line after the last.
std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems);

/// Sorts by begin. Stable: entries with the same begin keep their order.
void sort_columns(Columns& columns);

/// One level of an implicit search tree (no pointers): ascending values. Each level holds the first
/// of every 16 values of the level below. The bottom level is the searched data; the top level has
/// at most 16 values.
struct SearchLevel {
  const std::uint64_t* values;
  std::size_t count;
};

inline constexpr std::size_t kFanout = 16;       // values compared at once: two cache lines
inline constexpr std::size_t kSearchGroup = 16;  // look-ups done together, to overlap their cache
                                                 // misses

/// What the caller reads besides the answer, one value for each value of the bottom level. It is
/// prefetched as soon as its block is known, so that the cache misses overlap.
struct SearchPayload {
  const std::uint32_t* sizes;
  const std::uint64_t* lines;
};

/// Returns how many values of the bottom level are at most `key`, for one key or for kSearchGroup
/// keys. The levels are given from the top; there is at least one.
struct Search {
  std::size_t (*one)(std::span<const SearchLevel> levels, const SearchPayload& payload,
                     std::uint64_t key) noexcept;
  /// Like one(), and prefetches a payload of `bytes` bytes for each value.
  std::size_t (*one_of)(std::span<const SearchLevel> levels, const void* payload, std::size_t bytes,
                        std::uint64_t key) noexcept;
  void (*group)(std::span<const SearchLevel> levels, const std::uint64_t* keys,
                std::size_t* counts) noexcept;
};

/// Builds the levels above ascending values. The values must not move during its lifetime.
class SearchTree {
 public:
  SearchTree() = default;
  explicit SearchTree(std::span<const std::uint64_t> values);

  /// From the top; the last level is the values.
  std::span<const SearchLevel> levels() const noexcept { return levels_; }

 private:
  std::vector<MmapVector<std::uint64_t>> upper_;
  std::vector<SearchLevel> levels_;
};

/// The fastest search for this processor.
const Search& search() noexcept;

/// The addresses that several entries of one map cover with different names. A map has no times, so
/// it is unknown which of the entries an address belonged to. Empty and free of cost if entries do
/// not overlap; else 24 bytes for each stretch.
class ReusedAddresses {
 public:
  /// Adds `first` to `last` in map number `map`. Call settle() before contains().
  void add(Address first, Address last, std::uint64_t map) { spans_.push_back({map, first, last}); }
  void add(const ReusedAddresses& other) {
    spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  }
  void settle();

  /// O(log n).
  bool contains(Address address, std::uint64_t map) const noexcept;

 private:
  struct Span {
    std::uint64_t map;
    Address first;
    Address last;
  };
  std::vector<Span> spans_;  // ascending and disjoint
};

/// Finds them in entries sorted by begin. O(n log n) for any overlaps; reads only the names of
/// overlapping entries.
ReusedAddresses find_reused(const Columns& sorted, std::span<const Map> maps);

/// Whether two lines are entries of one map with different names.
bool are_rivals(std::uint64_t line, std::uint64_t other, std::span<const Map> maps) noexcept;

/// Which of two overlapping entries wins.
class OverlapPolicy {
 public:
  OverlapPolicy(Overlap overlap, std::span<const Map> maps) noexcept
      : overlap_(overlap), maps_(maps) {}

  /// What the policy compares. `size` is that of the whole entry, and only used for `inner`.
  struct Rank {
    std::uint64_t size;
    std::uint64_t line;
  };
  bool wins(const Rank& a, const Rank& b) const noexcept {
    if (overlap_ == Overlap::inner && a.size != b.size) return a.size < b.size;
    return overlap_ == Overlap::first ? a.line < b.line : a.line > b.line;
  }
  /// The rank of the entry of a line. Reads the line only if the policy compares sizes.
  Rank rank_of(std::uint64_t line) const noexcept;
  std::span<const Map> maps() const noexcept { return maps_; }

 private:
  Overlap overlap_;
  std::span<const Map> maps_;
};

/// An immutable table of ascending segments without overlaps, with a search tree. Segment sizes are
/// kept in 32 bits, too: a longer segment ends where the next begins or its entry ends.
class SegmentTable {
 public:
  SegmentTable() = default;
  /// Takes sorted, overlap-free columns.
  explicit SegmentTable(Columns segments, ReusedAddresses reused = {});

  /// The addresses with several names, among these segments and the entries that they hide.
  const ReusedAddresses& reused() const noexcept { return reused_; }
  std::size_t count() const noexcept { return segments_.count(); }
  Segment at(std::size_t position, std::span<const Map> maps) const noexcept;

  /// The line of the entry that owns `address`; UINT64_MAX if there is none. O(log n).
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

/// Resolves the overlaps of sorted columns by the policy. O(n log n) for any overlaps.
SegmentTable make_run(Columns sorted, const OverlapPolicy& precedence);

/// Merges both. O(a + b).
SegmentTable merge_runs(const SegmentTable& a, const SegmentTable& b,
                        const OverlapPolicy& precedence);

}  // namespace perfmap
