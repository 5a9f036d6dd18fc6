#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Checks a map by the PM rules of perfmap/rules.def that want no process (see lint_process()): how
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

  const Input& input() const noexcept { return map != nullptr ? map->input() : dump->input(); }
  /// Of findings about the whole file: a map has lines, a dump offsets.
  Location whole() const noexcept { return map != nullptr ? Location{0, 1, 1} : Location{}; }
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

/// Two entries that want the same address.
struct RangeFinding {
  const Rule* rule;  ///< kReusedStart, kDuplicate, kOverlap or kNested
  EntryRef here;     ///< the later of the two: a later line, or a line of a later map
  EntryRef other;
};

/// Every conflict between entries of these maps, in address order: each entry is held against the
/// one before it that reaches furthest. O(n log n) time, 28 bytes an entry. Lines that make no
/// sense go to `problems`.
PERFMAP_API void for_each_conflict(std::span<const Map> maps, Diagnostics& problems,
                                   const std::function<void(const RangeFinding&)>& visit);

/// "overlaps 'foo' of line 7", or "… of line 7 of perf-42.map" where that is another map.
PERFMAP_API std::string message_of(const RangeFinding& finding, std::span<const Map> maps);

/// Bytes of a jitdump that a safe fix replaces by others, of which there may be more or fewer.
struct DumpChange {
  const Rule* rule = nullptr;  ///< what calls for it
  std::uint64_t offset = 0;    ///< in the dump as it is
  std::uint64_t removed = 0;   ///< bytes that go
  std::string added;           ///< and what comes in their place
  std::string what;            ///< "code index 1 becomes 3"
};

/// The safe fixes of a dump, by offset and without overlaps: reserved flags are cleared (JD105),
/// names that are empty or no UTF-8 are written as in perf maps (JD205), code indices that were
/// used before become numbers that nothing else has, in the MOVEs of that code, too (JD208), and
/// bytes that only align go (JD305). Record sizes follow. Everything else stays as it is, byte for
/// byte: order, times, unknown records, damaged bytes.
///
/// Where other records would be read from the result than from the dump, which only bytes that were
/// damaged or written twice can bring about, its records keep what they have and the header alone
/// is mended. O(bytes + n log n); holds the fixed dump while it runs.
PERFMAP_API void for_each_change(const Jitdump& dump,
                                 const std::function<void(const DumpChange&)>& visit);

/// The dump with these changes. Equal to its bytes where there is nothing to mend; of its own
/// result it gives that very result.
PERFMAP_API std::string fixed_dump(const Jitdump& dump);

}  // namespace perfmap
