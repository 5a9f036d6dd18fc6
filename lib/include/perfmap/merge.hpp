#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "perfmap/export.hpp"
#include "perfmap/index.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {

/// What writing a portable map changed, and what some readers will still drop.
struct PortableStats {
  std::uint64_t entries = 0;        ///< lines written
  std::uint64_t changed_names = 0;  ///< escaped, bracketed or cut
  std::uint64_t address_zero = 0;   ///< some readers drop these
  std::uint64_t huge_sizes = 0;     ///< 4 GiB and more: some readers cut these to 32 bits
};

/// Writes what an index answers as a perf map that every reader answers the same way: sorted, no
/// overlaps, lower-case hexadecimal without 0x, one blank, LF, names as written_name.hpp says and
/// at most kMostPortableName bytes long, no size 0. Call index.compact() first. O(n); the index is
/// not one of Overlap::perf.
PERFMAP_API PortableStats write_portable(const Index& index, OutputFile& out);

/// The same in memory.
PERFMAP_API std::string portable_text(const Index& index);

/// Writes the lines of all maps in order, as they are; only a missing newline at the end of one is
/// added, so that nothing is glued together.
PERFMAP_API void write_concatenated(std::span<const Map> maps, OutputFile& out);

}  // namespace perfmap
