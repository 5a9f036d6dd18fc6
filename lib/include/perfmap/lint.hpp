// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/diagnostic.hpp"
#include "perfmap/image_list.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Checks a map by the PM rules of perfmap/rules.def that need no process (see lint_process()): the
/// format of its lines, its names, its ranges, and the file itself. Rules that `problems` ignores
/// cost little and are not counted. Findings are in the order of their lines.
///
/// One pass over the bytes, and O(n log n) for the ranges of any input. Uses about 60 bytes per
/// entry. To find out whether a process writes the map (PM070), it asks `writers`; if that is null,
/// it searches the descriptors of all processes.
PERFMAP_API void lint(const Map& map, Diagnostics& problems, FileWriters* writers = nullptr);

/// Checks a jitdump by the JD rules: header, records, contradictions between records, times, source
/// lines and unwinding information. The place of a finding is the offset of the field or record;
/// its line is 0. Without a header, that is the only finding. Findings are in the order of their
/// offsets.
///
/// O(bytes + n log n) for n records, however they overlap. Uses about 130 bytes per LOAD or MOVE.
/// In a growing dump an incomplete last record is not checked.
///
/// `namespace_pids` are the process's pids in its namespaces, if known: in a container a process
/// writes its own innermost pid, and a snapshot names the file by the outer pid.
PERFMAP_API void lint(const Jitdump& dump, Diagnostics& problems,
                      std::span<const pid_t> namespace_pids = {});

/// Checks .NET's list of images by the DI rules. O(n log n) for n images, and 80 bytes per image
/// with precompiled code.
PERFMAP_API void lint(const ImageList& list, Diagnostics& problems);

/// A map or a dump that lint() has checked, with its findings.
struct LintedFile {
  const Map* map = nullptr;
  const Jitdump* dump = nullptr;
  Diagnostics* problems = nullptr;

  const Input& input() const noexcept { return map != nullptr ? map->input() : dump->input(); }
  /// The place of findings about the whole file: a map has lines, a dump has offsets.
  Location whole() const noexcept { return map != nullptr ? Location{0, 1, 1} : Location{}; }
};

/// Checks for contradictions between maps and dumps: XF001 to XF003. Each finding goes to the file
/// that it is about, in the order of places.
///
/// Files belong together if they have the same process: the one below whose /proc/PID/root they
/// lie, else the one in their name (perf-PID.map, jit-PID.dump), else the one in the dump's header.
/// If there are only one map and one dump, they belong together unless their names contradict. If a
/// process has several dumps, its map is not compared with them. Both are compared as they are at
/// their end. O(n log n) for n entries and records.
PERFMAP_API void lint_together(std::span<const LintedFile> files);

/// Two entries that cover the same address.
struct RangeFinding {
  const Rule* rule;  ///< kReusedStart, kDuplicate, kOverlap or kNested
  EntryRef here;     ///< the later of the two: a later line, or a line of a later map
  EntryRef other;
};

/// Calls `visit` for every conflict between entries of these maps, in address order: each entry is
/// compared with the earlier one that reaches furthest. O(n log n) time, 28 bytes per entry.
/// Malformed lines go to `problems`.
PERFMAP_API void for_each_conflict(std::span<const Map> maps, Diagnostics& problems,
                                   const std::function<void(const RangeFinding&)>& visit);

/// "overlaps 'foo' of line 7", or "… of line 7 of perf-42.map" if that is another map.
PERFMAP_API std::string message_of(const RangeFinding& finding, std::span<const Map> maps);

/// Bytes of a map that a safe fix replaces.
struct LineChange {
  std::uint64_t offset = 0;   ///< where a line begins
  std::uint64_t removed = 0;  ///< number of bytes removed: a line with its newline
  std::string added;          ///< the bytes that replace them; empty: the line is removed
};

/// The change that fixes one finding in `text`, which lint() checked: its line, as tidy writes a
/// map of this line alone. Nothing if the rule has no safe fix, if the fix needs other lines, or if
/// the line has more than 64 KiB. O(bytes of the line).
PERFMAP_API std::optional<LineChange> line_fix(const Diagnostic& finding, std::string_view text);

/// Bytes of a jitdump that a safe fix replaces; the replacement may be longer or shorter.
struct DumpChange {
  const Rule* rule = nullptr;  ///< the rule that requires the change
  std::uint64_t record = 0;    ///< offset of the record that it is in; 0: the header
  std::uint64_t offset = 0;    ///< in the original dump
  std::uint64_t removed = 0;   ///< number of bytes removed
  std::string added;           ///< the bytes that replace them
  std::string what;            ///< "code index 1 becomes 3"
};

/// Calls `visit` for the safe fixes of a dump, by offset and without overlaps. Reserved flags are
/// cleared (JD105). Names that are empty or not UTF-8 are escaped as in perf maps (JD205). Code
/// indices that were used before get unused numbers, also in the MOVEs of that code (JD208). Bytes
/// that only align are removed (JD305). Record sizes are adjusted. Everything else keeps its bytes:
/// order, times, unknown records, damaged bytes.
///
/// If the fixed dump would not read back as the same records, only the header is fixed; this
/// happens only with bytes that are damaged or were written twice. O(bytes + n log n). Holds the
/// fixed dump in memory.
PERFMAP_API void for_each_change(const Jitdump& dump,
                                 const std::function<void(const DumpChange&)>& visit);

/// The dump with these changes. Equal to the input if there is nothing to fix. Idempotent: fixing
/// the result again does not change it.
PERFMAP_API std::string fixed_dump(const Jitdump& dump);

}  // namespace perfmap
