#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Writes JSON (RFC 8259) as it goes: nothing is held in memory, commas place themselves. The
/// caller keeps objects and arrays balanced and gives every member of an object a key. At most 64
/// levels.
///
/// Strings are bytes: what is not valid UTF-8 becomes U+FFFD, control characters (DEL and
/// U+0080 to U+009F too) are escaped.
/// Numbers may have all 64 bits; readers that keep numbers as doubles lose bits above 2^53.
/// Addresses are strings for that reason.
class PERFMAP_API JsonWriter {
 public:
  explicit JsonWriter(OutputFile& out) noexcept : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  /// `name` is plain ASCII without quotes: one of ours.
  void key(std::string_view name);
  void string(std::string_view bytes);
  void number(std::uint64_t value);
  void integer(std::int64_t value);
  /// `value` / 10^`decimals`, exactly: decimal(1500, 6) is 0.0015. At most 18 decimals.
  void decimal(std::uint64_t value, unsigned decimals);
  /// base64 (RFC 4648) of any bytes.
  void base64(std::string_view bytes);
  void boolean(bool value) { literal(value ? "true" : "false"); }
  void null() { literal("null"); }
  /// "0x7f3529fcf759"
  void address(Address value);
  /// A line end, between two documents of a stream or for people's eyes.
  void newline();

  /// A key and its value.
  void member(std::string_view name, std::string_view bytes) {
    key(name);
    string(bytes);
  }
  void member(std::string_view name, std::uint64_t value) {
    key(name);
    number(value);
  }

  /// The members "name" and, where the bytes are not UTF-8, "name_bytes" (base64 of them).
  void name_members(std::string_view bytes) { text_members("name", bytes); }
  /// The same under another name: KEY and KEY_bytes.
  void text_members(std::string_view name, std::string_view bytes);

 private:
  void open(char bracket);
  void close(char bracket);
  void literal(std::string_view text);
  void separate();

  OutputFile& out_;
  std::uint64_t filled_ = 0;  // one bit a level: something precedes on this level
  bool after_key_ = false;
};

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
/// with a blank in front) are written as escape_map_name() says and counted. The first thing that
/// is wrong ends it: fails with bad_format, `where` has line and column, those of JSON lines in the
/// whole text.
PERFMAP_API Result<MapText> map_text_from_json(std::string_view json);

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

/// The dump of JSON, either form, in the byte order that its header names. Fails with bad_format
/// where something is wrong, or zeros make the dump too large; `where` says where the record ended
/// in which it is. Holds the dump.
PERFMAP_API Result<JitdumpBytes> dump_from_json(std::string_view json);

/// An ELF file that a process had mapped when its snapshot was taken. The file itself is not in it.
struct SnapshotModule {
  std::string path;          ///< raw bytes; without " (deleted)"
  std::string build_id;      ///< raw bytes; empty where the file has none, or could not be opened
  std::uint64_t size = 0;    ///< of the file; 0 where it could not be opened
  bool was_deleted = false;  ///< the file at that path may have been another one

  friend bool operator==(const SnapshotModule&, const SnapshotModule&) = default;
};

/// A file that was copied into a snapshot.
struct SnapshotFile {
  enum class Kind : std::uint8_t { map, dump, vdso };

  Kind kind = Kind::map;
  std::string path;           ///< in the bundle: relative, "/" between its parts
  std::string source;         ///< where it was, as the one who took the snapshot saw it
  std::uint32_t owner = 0;    ///< uid
  std::int64_t mtime_ns = 0;  ///< since 1970
  std::uint64_t size = 0;     ///< bytes that were copied
  std::uint64_t cut = 0;      ///< bytes at its end that were not: half a line, or too many
  std::uint64_t address = 0;  ///< of the vdso in memory

  friend bool operator==(const SnapshotFile&, const SnapshotFile&) = default;
};

/// What manifest.json of a snapshot says: see docs/format-snapshot.md.
struct SnapshotManifest {
  pid_t pid = 0;                      ///< as the one who took it saw it
  std::vector<pid_t> namespace_pids;  ///< NStgid: in each pid namespace, the taker's first
  /// Those that it was forked from and has memory from, the nearest first; their files are here,
  /// too.
  std::vector<pid_t> parents = {};
  std::string comm;
  std::string executable;        ///< the program's path; empty where it could not be read
  std::uint32_t uid = 0;         ///< effective
  std::uint64_t start = 0;       ///< clock ticks since the machine began
  std::int64_t boot_ns = 0;      ///< when the machine began, since 1970
  std::int64_t taken_at_ns = 0;  ///< since 1970
  std::string kernel;            ///< uname(2): release
  std::string machine;           ///< and machine, such as "x86_64"
  std::vector<SnapshotModule> modules;
  std::vector<SnapshotFile> files;
  std::vector<std::string> left_out;  ///< one line each: files that were there and not believed

  friend bool operator==(const SnapshotManifest&, const SnapshotManifest&) = default;
};

/// "map", "dump" or "vdso".
PERFMAP_API std::string_view to_string(SnapshotFile::Kind kind) noexcept;

/// Writes the JSON of schema perfmap.snapshot/1; does not commit `out`.
PERFMAP_API void write_manifest(const SnapshotManifest& manifest, OutputFile& out);

/// Reads it back. Fails with bad_format, and says which member is wrong; with unsupported where it
/// is JSON of another schema. Paths of files are relative, and have no ".." in them.
PERFMAP_API Result<SnapshotManifest> parse_manifest(std::string_view json);

}  // namespace perfmap
