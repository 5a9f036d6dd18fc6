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

/// Sizes are kept in 32 bits. One that needs more is kTooLong here and read from its line.
inline constexpr std::uint32_t kTooLong = UINT32_MAX;

constexpr std::uint32_t short_size(std::uint64_t size) noexcept {
  return size < kTooLong ? static_cast<std::uint32_t>(size) : kTooLong;
}

constexpr std::uint64_t kMapShift = 48;

/// Entries as columns, one value an entry: 20 bytes each. `line` is EntryRef::line, which grows
/// along the file and from map to map, so that it also says which of two entries is the later.
struct Columns {
  MmapVector<std::uint64_t> begin;
  MmapVector<std::uint32_t> size;  ///< see kTooLong; 0 was made 1
  MmapVector<std::uint64_t> line;

  std::size_t count() const noexcept { return begin.size(); }
  void make_room(std::size_t more) {
    begin.make_room(more);
    size.make_room(more);
    line.make_room(more);
  }
  /// Only into room that was made.
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

/// The last address of what `size` says for an entry, or a part of one, that begins at `begin`.
/// (The end after it may be 2^64, which has no number.)
inline std::uint64_t last_of(std::uint64_t begin, std::uint32_t size, std::uint64_t line,
                             std::span<const Map> maps) noexcept {
  if (size != kTooLong) return begin + (size - 1);
  const EntryRef hit{line};
  const auto entry = maps[hit.map()].entry_at(hit.offset());
  return entry ? std::max(begin, entry->range.last()) : begin;  // a line that was cut off meanwhile
}

/// Reads the entries of map number `number` from `offset`, the start of line `line`, into `out`.
/// Returns the number of the line behind the last.
std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems);

/// Sorts by begin; entries that begin together keep their order.
void sort_columns(Columns& columns);

/// One level of a search tree without pointers: ascending values. Of each 16 values of a level, the
/// level above holds the first; the bottom level is what is searched, the top one has at most 16.
struct SearchLevel {
  const std::uint64_t* values;
  std::size_t count;
};

inline constexpr std::size_t kFanout = 16;       // values compared at once: two cache lines
inline constexpr std::size_t kSearchGroup = 16;  // look-ups whose cache misses overlap

/// What the caller reads beside the answer, one value for each of the bottom level: asked for as
/// soon as its block is known, so that the cache misses overlap.
struct SearchPayload {
  const std::uint32_t* sizes;
  const std::uint64_t* lines;
};

/// How many values of the bottom level are at most `key`, for one key or for kSearchGroup of them.
/// Levels are given from the top; there is at least one.
struct Search {
  std::size_t (*one)(std::span<const SearchLevel> levels, const SearchPayload& payload,
                     std::uint64_t key) noexcept;
  /// As one(), for a payload of `bytes` bytes for each value.
  std::size_t (*one_of)(std::span<const SearchLevel> levels, const void* payload, std::size_t bytes,
                        std::uint64_t key) noexcept;
  void (*group)(std::span<const SearchLevel> levels, const std::uint64_t* keys,
                std::size_t* counts) noexcept;
};

/// The levels above ascending values, which stay where they are while it lives.
class SearchTree {
 public:
  SearchTree() = default;
  explicit SearchTree(std::span<const std::uint64_t> values);

  /// From the top; the last are the values.
  std::span<const SearchLevel> levels() const noexcept { return levels_; }

 private:
  std::vector<MmapVector<std::uint64_t>> upper_;
  std::vector<SearchLevel> levels_;
};

/// The fastest that this processor can do.
const Search& search() noexcept;

/// The addresses that several entries of one map have, by different names: of a map, which has no
/// times, nobody can say whose code an address was. Empty, and for nothing, where entries do not
/// overlap; else 24 bytes a stretch of them.
class ReusedAddresses {
 public:
  /// From `first` to `last` in map number `map`. settle() comes before anything is asked.
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
  std::vector<Span> spans_;  // ascending, apart from each other
};

/// Those of entries that are sorted by begin. O(n log n) whatever overlaps; looks only at names of
/// entries that overlap others.
ReusedAddresses find_reused(const Columns& sorted, std::span<const Map> maps);

/// Whether two lines are entries of one map by different names.
bool are_rivals(std::uint64_t line, std::uint64_t other, std::span<const Map> maps) noexcept;

/// Which of two entries answers where both do.
class OverlapPolicy {
 public:
  OverlapPolicy(Overlap overlap, std::span<const Map> maps) noexcept
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
class SegmentTable {
 public:
  SegmentTable() = default;
  /// Takes sorted, overlap-free columns.
  explicit SegmentTable(Columns segments, ReusedAddresses reused = {});

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
SegmentTable make_run(Columns sorted, const OverlapPolicy& precedence);

/// The partition of both. O(a + b).
SegmentTable merge_runs(const SegmentTable& a, const SegmentTable& b,
                        const OverlapPolicy& precedence);

}  // namespace perfmap
