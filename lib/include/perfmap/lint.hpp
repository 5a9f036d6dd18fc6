#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <sys/types.h>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Checks a map by the PM rules of perfmap/rules.hpp that want no process (see lint_process()): how
/// its lines are written, its names, its ranges, and the file itself. Findings of rules that
/// `problems` ignores cost little and are not counted. Findings end up in the order of their lines.
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
///
/// `namespace_pids` are those of the dump's process, where they are known: in a container it writes
/// the one that it knows itself by, and a snapshot calls the file by the one outside.
PERFMAP_API void lint(const Jitdump& dump, Diagnostics& problems,
                      std::span<const pid_t> namespace_pids = {});

/// A file that lint() has gone over, with its findings: a map or a dump.
struct LintedFile {
  const Map* map = nullptr;
  const Jitdump* dump = nullptr;
  Diagnostics* problems = nullptr;
};

/// Checks what maps and dumps say about each other: XF001 to XF003. Each finding goes to the file
/// that it is about, in the order of places.
///
/// Files belong together by their process: the one below whose /proc/PID/root they lie, or else the
/// one in their name (perf-PID.map, jit-PID.dump), or else in the dump's header. One map and one
/// dump, if that is all, belong together unless their names say otherwise. Where a process has more
/// than one dump, none of them is held against its map. Both count as they are at their end.
/// O(n log n) for n entries and records.
PERFMAP_API void lint_together(std::span<const LintedFile> files);

/// What a rule is about, why it matters and what mends it: some lines of plain text.
PERFMAP_API std::string_view explanation(const Rule& rule) noexcept;

}  // namespace perfmap
