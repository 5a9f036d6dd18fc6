#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What writing a portable map changed, and what some readers will still drop.
struct PortableStats {
  std::uint64_t entries = 0;        ///< lines written
  std::uint64_t changed_names = 0;  ///< escaped, bracketed or cut
  std::uint64_t address_zero = 0;   ///< some readers drop these
  std::uint64_t huge_sizes = 0;     ///< 4 GiB and more: some readers cut these to 32 bits
};

/// Writes what an index answers as a perf map that every reader answers the same way: sorted, no
/// overlaps, lower-case hexadecimal without 0x, one blank, LF, names as escape_map_name() says and
/// at most kMaxPortableName bytes long, no size 0. Call index.compact() first. O(n); the index is
/// not one of Overlap::perf.
PERFMAP_API PortableStats write_portable(const Index& index, OutputFile& out);

/// The same in memory.
PERFMAP_API std::string portable_text(const Index& index);

/// Writes the lines of all maps in order, as they are; only a missing newline at the end of one is
/// added, so that nothing is glued together.
PERFMAP_API void write_concatenated(std::span<const Map> maps, OutputFile& out);

/// How a name differs between two maps.
struct NameChange {
  enum class Kind : std::uint8_t {
    appeared,  ///< `after` is a range that only the second map has under this name
    vanished,  ///< `before` is one that only the first map has
    moved,     ///< a range of the first map became one of the second: another start or size
  };
  Kind kind;
  std::string_view name;
  AddressRange before;
  AddressRange after;
};

/// Compares entries as they are written, by name and range: overlaps are not resolved, and lines
/// that make no sense, the order of lines, and how often an entry is repeated do not count. Ranges
/// of one name that only one map has are paired as moves: first those of equal size (the same code
/// elsewhere), then the rest (moved or compiled again), both in address order. What is left over
/// has vanished or appeared. Lines of either map that make no sense go to `problems`. Changes come
/// by name; within a name those with a range in the first map, by that range, then what appeared.
/// Returns how many there are. O(n log n).
PERFMAP_API std::uint64_t diff_maps(const Map& before, const Map& after, Diagnostics& problems,
                                    const std::function<void(const NameChange&)>& visit);

}  // namespace perfmap
