#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/map.hpp"

namespace perfmap {

/// A line as perf 6 reads it (tools/perf/util/symbol.c, dso__load_perf_map), whatever comes of it:
/// numbers by strtoull, one byte of any value between fields, the last byte of the line taken for
/// its newline, names of one or two bytes dropped. `line` has its newline unless the file ends
/// without one; `range.size` is not clamped, as perf does not either.
std::optional<Entry> read_perf_line(std::string_view line, std::uint64_t offset) noexcept;

}  // namespace perfmap
