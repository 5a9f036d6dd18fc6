#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// Checks a map by every rule of perfmap/rules.hpp: how its lines are written, its names, its
/// ranges, and the file itself. Findings of rules that `problems` ignores cost little and are not
/// counted. Findings end up in the order of their lines.
///
/// One pass over the bytes and O(n log n) for the ranges, whatever the input; about 60 bytes an
/// entry while it runs.
PERFMAP_API void lint(const Map& map, Diagnostics& problems);

/// Checks a jitdump by the JD rules: header, records, what they say about each other, times, source
/// lines and unwinding information. A finding's place is the offset of the field or record at
/// fault; its line is 0. Where there is no header, that is the only finding. Findings end up in the
/// order of their offsets.
///
/// O(bytes + n log n) for n records, whatever they overlap; about 130 bytes a LOAD or MOVE while it
/// runs. Of a dump that may still grow, what is not whole yet is not judged.
PERFMAP_API void lint(const Jitdump& dump, Diagnostics& problems);

/// What a rule is about, why it matters and what mends it: some lines of plain text.
PERFMAP_API std::string_view explanation(const Rule& rule) noexcept;

}  // namespace perfmap
