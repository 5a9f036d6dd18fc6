#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/index.hpp"
#include "perfmap/json_writer.hpp"
#include "perfmap/map.hpp"
#include "perfmap/map_text.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// What "source" says of an input that was no perf map itself.
struct JsonOrigin {
  std::string_view kind = "perf-map";
  std::optional<std::uint64_t> bytes;  ///< nothing: those of the map's input
};

/// Perf maps as JSON; docs/schema/perfmap.map-1.json is the schema.
///
/// One object: {"schema":"perfmap.map/1","source":{…},"entries":[…],"problems":[…]}. An entry is
/// {"start":"0x…","size":N,"name":"…","line":N}; a name that is not UTF-8 has U+FFFD in place of
/// its bad bytes and "name_bytes", base64 of the exact ones. As JSON lines: one entry a line,
/// nothing else. All in one pass, nothing held in memory but the problems, of which those are
/// written that `problems` keeps.
PERFMAP_API void write_map_json(const Map& map, OutputFile& out, Diagnostics& problems,
                                const JsonOrigin& origin = {});
PERFMAP_API void write_map_jsonl(const Map& map, OutputFile& out, Diagnostics& problems);

/// One entry, which parse_map_line() made of `line`: the object that the above write for it.
PERFMAP_API void write_map_line_json(JsonWriter& json, std::string_view line, const Entry& entry,
                                     std::uint64_t number);

/// The same of what is in effect: the index's segments, ascending and without overlaps; "line" says
/// where the name came from. Of several maps "sources" is an array instead of "source", and entries
/// and problems say in "source" which of them is theirs; `origin` counts for one map only. Call
/// index.compact() first. `problems` were met when it was built.
PERFMAP_API void write_effective_json(const Index& index, OutputFile& out,
                                      const Diagnostics& problems, const JsonOrigin& origin = {});
PERFMAP_API void write_effective_jsonl(const Index& index, OutputFile& out);

/// The object {"rule":"PM003","line":N,"column":N,"offset":N,"message":"…"}.
PERFMAP_API void write_problem(JsonWriter& json, const Diagnostic& problem);

/// An entry read from JSON.
struct JsonEntry {
  Address start = 0;
  std::uint64_t size = 0;
  std::string name;
};

/// One entry, and nothing else. "start" and "size" are unsigned numbers, or hexadecimal strings;
/// "name_bytes" goes before "name"; other members are ignored, but a "schema" that is not ours.
/// Fails with bad_format, `where` says where in the line.
PERFMAP_API Result<JsonEntry> entry_from_json(std::string_view line);

/// The perf map text of our JSON: either form; of nothing but white space, no text. Entries keep
/// their order and their exact names where a map can hold them; other names (empty, with a newline,
/// with a blank in front) are written as written_name.hpp says and counted. The first thing that is
/// wrong ends it: fails with bad_format, `where` has line and column, those of JSON lines in the
/// whole text.
PERFMAP_API Result<MapText> map_text_from_json(std::string_view json);

}  // namespace perfmap
