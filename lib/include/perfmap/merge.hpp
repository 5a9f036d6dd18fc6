// SPDX-License-Identifier: MIT
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

/// What write_portable() changed, and what some readers still drop.
struct PortableStats {
  std::uint64_t entries = 0;       ///< lines written
  ChangedNames changed = {};       ///< escaped, bracketed or truncated
  std::uint64_t address_zero = 0;  ///< some readers drop these
  std::uint64_t huge_sizes = 0;    ///< 4 GiB and more: some readers truncate these to 32 bits
};

/// Writes an index as a perf map that all readers read in the same way: sorted, no overlaps,
/// lower-case hexadecimal without 0x, one blank between fields, LF, no size 0, names escaped by
/// escape_map_name() and at most kMaxPortableName bytes long. Call index.compact() first. O(n).
/// Does not support Overlap::perf.
PERFMAP_API PortableStats write_portable(const Index& index, OutputFile& out);

/// The same text in memory.
PERFMAP_API std::string portable_text(const Index& index);

/// Writes the lines of all maps in order, unchanged. Only a missing final newline of a map is
/// added, so that lines of two maps do not join.
PERFMAP_API void write_concatenated(std::span<const Map> maps, OutputFile& out);

/// A difference between two maps for one name; see stable_name().
struct NameChange {
  enum class Kind : std::uint8_t {
    appeared,  ///< only the second map has the range `after` under this name
    vanished,  ///< only the first map has the range `before`
    moved,     ///< a range with another start or size in the second map
  };
  Kind kind;
  std::string_view name;  ///< borrowed for the call
  AddressRange before;
  AddressRange after;
};

/// Compares entries as written, by stable name and range. Overlaps are not resolved; the order of
/// lines and repeated entries do not count. Malformed lines of either map go to `problems`.
///
/// Ranges of one name that only one map has are paired as moves: first those of equal size (the
/// same code elsewhere), then the rest (moved or compiled again), both in address order. Ranges
/// without a partner have vanished or appeared. Changes are ordered by name; within a name, those
/// with a range in the first map come first, by that range. Returns the number of changes. O(n log
/// n).
PERFMAP_API std::uint64_t diff_maps(const Map& before, const Map& after, Diagnostics& problems,
                                    const std::function<void(const NameChange&)>& visit);

}  // namespace perfmap
