#pragma once

#include <string_view>
#include <vector>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// Which line of the program the code of a loop's operations came from, by address; `log` is the
/// text that the loop was read from, from which the names of files are borrowed. Nothing where the
/// log has no operations of it, or they tell no offsets.
///
/// Offsets count from where PyPy began to write the code, which is before the first address that
/// the log tells, and depends on the release. The last one is that of the end of the operations,
/// whose address the log does tell.
///
/// Code of no operation, or of one before the first debug merge point, is that of the line where
/// the function begins, as compilers have it of what they make themselves. O(operations).
std::vector<LineRecord> lines_of(const CompiledLoop& loop, std::string_view log);

}  // namespace perfmap
