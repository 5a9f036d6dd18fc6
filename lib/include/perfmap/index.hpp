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

/// Who answers for an address that several entries cover. Everywhere else the answer is the one
/// entry that covers it, or none: a look-up never rounds to a neighbour. Size 0 counts as 1.
enum class Overlap : std::uint8_t {
  last,   ///< the later line, and the later map: runtimes append when they reuse memory
  first,  ///< the reverse
  inner,  ///< the shortest entry; among equals the later
  perf,   ///< what perf 6 answers: its line parser and its red-black tree, warts and all
};

/// "last", "first", "inner", "perf".
PERFMAP_API std::optional<Overlap> parse_overlap(std::string_view name) noexcept;
PERFMAP_API std::string_view to_string(Overlap overlap) noexcept;

/// Names a line of one of an index's maps; cheap to keep. Default: nobody.
struct EntryRef {
  std::uint64_t line = UINT64_MAX;  ///< map number in the upper 16 bits, offset in the lower 48

  explicit operator bool() const noexcept { return line != UINT64_MAX; }
  std::size_t map() const noexcept { return static_cast<std::size_t>(line >> 48); }
  std::uint64_t offset() const noexcept { return line & ((std::uint64_t{1} << 48) - 1); }
  friend bool operator==(const EntryRef&, const EntryRef&) = default;
};

/// A piece of the address space and the line that answers for it.
struct Segment {
  AddressRange range;
  EntryRef owner;

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Answers "which code is at this address?" for perf maps whose entries may overlap.
///
/// Built once, O(n log n) whatever the input; each look-up is O(log n). Holds 20 bytes a segment
/// (there are at most 2n - 1), besides the maps. Const members may be used from several threads.
class PERFMAP_API Index {
 public:
  /// Reads all maps; lines that make no sense go to `problems`. At most 65535 maps.
  Index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems);
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;
  ~Index();

  std::span<const Map> maps() const noexcept;
  Overlap overlap() const noexcept;

  /// Who answers for `address`. O(log n), allocates nothing.
  EntryRef find(Address address) const noexcept;

  /// find() for many: `hits[i]` answers `addresses[i]`. Any order; fastest where they ascend. The
  /// two spans have the same length.
  void find_all(std::span<const Address> addresses, std::span<EntryRef> hits) const noexcept;

  /// The entry behind a hit of this index, made from its line; nothing where its input was
  /// truncated since. O(line). The hit is not nobody's.
  std::optional<Entry> entry(EntryRef hit) const noexcept;
  /// Its line number in its map; see Map::line_number().
  std::uint64_t line_number(EntryRef hit) const;

  /// Whether its map has several entries with different names at an address that `hit` is the
  /// answer for: a map has no times, so whose code it was nobody knows. Not for Overlap::perf, of
  /// which it is never said. O(log n); nothing is kept for maps whose entries do not overlap.
  bool is_reused(Address address, EntryRef hit) const noexcept;

  /// find(), then entry().
  std::optional<Entry> find_entry(Address address) const noexcept;

  /// The partition itself, ascending and without overlaps; of neighbours with the same owner, no
  /// two touch. Not for Overlap::perf, whose answers are no partition: then there are none.
  /// O(n) when refresh() has left several runs, else O(1).
  const Index& compact();
  std::size_t segment_count() const noexcept;  ///< call compact() first
  Segment segment(std::size_t position) const noexcept;

  /// Lines that were read as entries.
  std::uint64_t entry_count() const noexcept;

  /// Takes in what was appended to the maps: amortised O(k log n) for k new lines. A map that was
  /// truncated or replaced is read afresh, with all others: O(n log n). Hits and entries taken
  /// before stay valid only where it answers unchanged.
  Result<Growth> refresh(Diagnostics& problems);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Answers a few addresses in one pass over the maps, without an index: O(lines × addresses) time
/// and O(addresses) memory. `hits[i]` answers `addresses[i]`; entry_of() makes an entry of one.
/// Lines that make no sense go to `problems`. The overlap policy is not perf, which needs an Index.
PERFMAP_API void find_by_scan(std::span<const Map> maps, Overlap overlap,
                              std::span<const Address> addresses, std::span<EntryRef> hits,
                              Diagnostics& problems);
/// The same; `reused[i]` answers Index::is_reused() for `addresses[i]`.
PERFMAP_API void find_by_scan(std::span<const Map> maps, Overlap overlap,
                              std::span<const Address> addresses, std::span<EntryRef> hits,
                              std::span<bool> reused, Diagnostics& problems);

/// The entry behind such a hit; nothing where its map was truncated since. O(line). The hit is not
/// nobody's.
PERFMAP_API std::optional<Entry> entry_of(std::span<const Map> maps, EntryRef hit) noexcept;

}  // namespace perfmap
