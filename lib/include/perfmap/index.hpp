// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Which entry wins at an address that several entries cover. At other addresses the result is the
/// only entry that covers it, or none: a look-up never rounds to a neighbour. Size 0 counts as 1.
enum class Overlap : std::uint8_t {
  last,   ///< the later line, and the later map: runtimes append when they reuse memory
  first,  ///< the earlier line, and the earlier map
  inner,  ///< the shortest entry; among equals the later one
  perf,   ///< the result of perf 6, including the quirks of its line parser and its red-black tree
};

/// "last", "first", "inner", "perf".
PERFMAP_API std::optional<Overlap> parse_overlap(std::string_view name) noexcept;
PERFMAP_API std::string_view to_string(Overlap overlap) noexcept;

/// Identifies a line of one of an index's maps. Small, so it can be stored. Default: no line.
struct EntryRef {
  std::uint64_t line = UINT64_MAX;  ///< map number in the upper 16 bits, offset in the lower 48

  explicit operator bool() const noexcept { return line != UINT64_MAX; }
  std::size_t map() const noexcept { return static_cast<std::size_t>(line >> 48); }
  std::uint64_t offset() const noexcept { return line & ((std::uint64_t{1} << 48) - 1); }
  friend bool operator==(const EntryRef&, const EntryRef&) = default;
};

/// A part of the address space and the line that owns it.
struct Segment {
  AddressRange range;
  EntryRef owner;

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Finds the code at an address in perf maps whose entries may overlap.
///
/// Building it is O(n log n) for any input; a look-up is O(log n). Uses 20 bytes per segment (at
/// most 2n - 1 segments) in addition to the maps. Several threads may use const members.
class PERFMAP_API Index {
 public:
  /// Reads all maps; malformed lines go to `problems`. At most 65535 maps.
  Index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems);
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;
  ~Index();

  std::span<const Map> maps() const noexcept;
  Overlap overlap() const noexcept;

  /// The line that owns `address`. O(log n), allocates nothing.
  EntryRef find(Address address) const noexcept;

  /// find() for many addresses: `hits[i]` is the result for `addresses[i]`. Any order; fastest if
  /// they ascend. Both spans have the same length.
  void find_all(std::span<const Address> addresses, std::span<EntryRef> hits) const noexcept;

  /// Parses the entry of a hit of this index; nothing if its input was truncated since. O(line).
  /// The hit must not be empty.
  std::optional<Entry> entry(EntryRef hit) const noexcept;
  /// The line number of the hit in its map; see Map::line_number().
  std::uint64_t line_number(EntryRef hit) const;

  /// Whether the map of `hit` has several entries with different names at `address`, of which `hit`
  /// is the winner. A map has no times, so the name may be wrong. Always false for Overlap::perf.
  /// O(log n); uses no memory for maps whose entries do not overlap.
  bool is_reused(Address address, EntryRef hit) const noexcept;

  /// find(), then entry().
  std::optional<Entry> find_entry(Address address) const noexcept;

  /// entry() of each hit, and nothing for an empty one. After find_all(), names for many addresses
  /// in a third of the time of find_entry(), because their cache misses overlap. Both spans have
  /// the same length.
  void entries(std::span<const EntryRef> hits,
               std::span<std::optional<Entry>> entries) const noexcept;

  /// Makes segments available: ascending, without overlaps, and adjacent segments have different
  /// owners. Overlap::perf has no segments, because its results do not partition the address space.
  /// O(n) if refresh() has left several tables to merge, else O(1).
  const Index& compact();
  std::size_t segment_count() const noexcept;  ///< call compact() first
  Segment segment(std::size_t position) const noexcept;

  /// Number of lines that were read as entries.
  std::uint64_t entry_count() const noexcept;

  /// Reads what was appended to the maps: amortised O(k log n) for k new lines. If a map was
  /// truncated or replaced, all maps are read again: O(n log n). Earlier hits and entries stay
  /// valid only if the result is Growth::unchanged.
  Result<Growth> refresh(Diagnostics& problems);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Looks up a few addresses in one pass over the maps, without an index: O(lines × addresses) time
/// and O(addresses) memory. `hits[i]` is the result for `addresses[i]`; entry_of() parses its
/// entry. Malformed lines go to `problems`. Overlap::perf is not supported: it needs an Index.
///
/// `reused[i]` is the result of Index::is_reused() for `addresses[i]`, if `reused` is not empty.
/// With more than one thread, maps of more than 4 MiB are read in parts of that size, in parallel,
/// with O(addresses) memory for each part; a map's progress() is still called in the caller's
/// thread only.
PERFMAP_API void find_by_scan(std::span<const Map> maps, Overlap overlap,
                              std::span<const Address> addresses, std::span<EntryRef> hits,
                              std::span<bool> reused, Diagnostics& problems, unsigned threads = 1);

/// Parses the entry of such a hit; nothing if its map was truncated since. O(line). The hit must
/// not be empty.
PERFMAP_API std::optional<Entry> entry_of(std::span<const Map> maps, EntryRef hit) noexcept;

}  // namespace perfmap
