#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// Jitdumps as JSON; docs/schema/perfmap.map-1.json is the schema.
///
/// One object: {"schema":"perfmap.map/1","source":{…,"kind":"jitdump"},"header":{…},"entries":[…],
/// "records":[…],"problems":[…]}. An entry is a LOAD: {"start","size","name","offset","time","pid",
/// "tid","index"}, with "vma" where that is another address, "code" (base64) with `with_code`, and
/// "lines", corrected as JitDetails does it. A record of another kind has its "kind", "offset",
/// "time" and fields as they are in the file. Offsets are the records' in the file, and give their
/// order back. A body that cannot be written as fields alone, to the byte, is in "body" (base64).
///
/// Times are strings: "SECONDS.NANOSECONDS", or ticks without a point where the dump counts those.
/// dump_from_json() makes the same dump of this, byte for byte, where `with_code` was true and
/// nothing was damaged.
///
/// As JSON lines: the first line has "schema", "source" and "header"; then a line for each record
/// in the order of the file. Problems are in `problems`. O(bytes); holds what JitDetails holds.
PERFMAP_API void write_dump_json(const Jitdump& dump, OutputFile& out, Diagnostics& problems,
                                 bool with_code);
PERFMAP_API void write_dump_jsonl(const Jitdump& dump, OutputFile& out, Diagnostics& problems,
                                  bool with_code);

/// What was there at `time`: the pieces of Timeline::for_each_at(), each an entry with the fields
/// of its LOAD. As one object of that schema, or as JSON lines. `problems` were met when the
/// timeline was built.
PERFMAP_API void write_timeline_json(const Timeline& timeline, std::uint64_t time, OutputFile& out,
                                     const Diagnostics& problems);
PERFMAP_API void write_timeline_jsonl(const Timeline& timeline, std::uint64_t time,
                                      OutputFile& out);

/// Whether this JSON is one that the above wrote of a jitdump. Looks at both ends of it only.
PERFMAP_API bool is_dump_json(std::string_view json) noexcept;

/// A jitdump that was made of something else: its bytes, for Input::from_text().
struct DumpBytes {
  /// Sizes are cheap to claim: a dump with code that nobody knew does not get larger than this.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

  std::string bytes;
  /// LOADs that were said to have code, and whose code nobody knew. Zeros stand for up to 32 MiB of
  /// it, because perf takes that many bytes from the end of a record, whatever they are.
  std::uint64_t without_code = 0;
};

/// The dump of JSON, either form, in the byte order that its header names. Fails with bad_format
/// where something is wrong, or zeros make the dump too large; `where` says where the record ended
/// in which it is. Holds the dump.
PERFMAP_API Result<DumpBytes> dump_from_json(std::string_view json);

}  // namespace perfmap
