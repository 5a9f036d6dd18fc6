// SPDX-License-Identifier: MIT
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

/// Writes JSON (RFC 8259) as a stream: keeps nothing in memory and adds commas itself. The caller
/// balances objects and arrays and gives every member of an object a key. At most 64 levels.
///
/// Strings are bytes: invalid UTF-8 becomes U+FFFD; control characters, including DEL and U+0080 to
/// U+009F, are escaped. Numbers may use all 64 bits; readers that store numbers as doubles lose
/// bits above 2^53. Addresses are strings for that reason.
class PERFMAP_API JsonWriter {
 public:
  explicit JsonWriter(OutputFile& out) noexcept : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  /// `name` must be ASCII without characters that need an escape.
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
  /// A newline, between two documents of a stream or for readability.
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
  void begin_object(std::string_view name) {
    key(name);
    begin_object();
  }
  void begin_array(std::string_view name) {
    key(name);
    begin_array();
  }
  /// An array with what `write` writes for each item.
  template <class Items, class Write>
  void list(std::string_view name, Items&& items, Write write) {
    begin_array(name);
    for (auto&& one : items) write(one);
    end_array();
  }
  void integer(std::string_view name, std::int64_t value) {
    key(name);
    integer(value);
  }
  void decimal(std::string_view name, std::uint64_t value, unsigned decimals) {
    key(name);
    decimal(value, decimals);
  }
  void base64(std::string_view name, std::string_view bytes) {
    key(name);
    base64(bytes);
  }
  void boolean(std::string_view name, bool value) {
    key(name);
    boolean(value);
  }
  void null(std::string_view name) {
    key(name);
    null();
  }
  void address(std::string_view name, Address value) {
    key(name);
    address(value);
  }

  /// The text, or null if it is empty.
  void text_or_null(std::string_view name, std::string_view bytes) {
    bytes.empty() ? null(name) : member(name, bytes);
  }

  /// The members "name" and, if the bytes are not UTF-8, "name_bytes" (base64 of them).
  void name_members(std::string_view bytes) { text_members("name", bytes); }
  /// The same with other keys: KEY and KEY_bytes.
  void text_members(std::string_view name, std::string_view bytes);

 private:
  void open(char bracket);
  void close(char bracket);
  void literal(std::string_view text);
  void separate();

  OutputFile& out_;
  std::uint64_t filled_ = 0;  // one bit per level: the level has a value already
  bool after_key_ = false;
};

/// The member "source" for a map that was converted from another input.
struct JsonOrigin {
  std::string_view kind = "perf-map";
  std::optional<std::uint64_t> bytes;  ///< nothing: the size of the map's input
};

/// Perf maps as JSON; docs/schema/perfmap.map-1.json is the schema.
///
/// One object: {"schema":"perfmap.map/1","source":{…},"entries":[…],"problems":[…]}. An entry is
/// {"start":"0x…","size":N,"name":"…","line":N}; a name that is not UTF-8 has U+FFFD in place of
/// invalid bytes, and "name_bytes", base64 of the exact bytes. As JSON lines: one entry per line,
/// nothing else. One pass; holds only the problems. Writes the problems that `problems` keeps.
PERFMAP_API void write_map_json(const Map& map, OutputFile& out, Diagnostics& problems,
                                const JsonOrigin& origin = {});
PERFMAP_API void write_map_jsonl(const Map& map, OutputFile& out, Diagnostics& problems);

/// Writes one entry, which parse_map_line() made from `line`, as the functions above write it.
PERFMAP_API void write_map_line_json(JsonWriter& json, std::string_view line, const Entry& entry,
                                     std::uint64_t number);

/// Writes the index's segments instead of the entries: ascending and without overlaps; "line" is
/// the line with the name. For several maps there is an array "sources" instead of "source", and
/// "source" in an entry or problem is a position in that array; `origin` is used for one map only.
/// Call index.compact() first. `problems` are those of building the index.
PERFMAP_API void write_effective_json(const Index& index, OutputFile& out,
                                      const Diagnostics& problems, const JsonOrigin& origin = {});
PERFMAP_API void write_effective_jsonl(const Index& index, OutputFile& out);

/// The object {"rule":"PM003","line":N,"column":N,"offset":N,"message":"…"}.
PERFMAP_API void write_problem(JsonWriter& json, const Diagnostic& problem);

/// An entry that was read from JSON.
struct JsonEntry {
  Address start = 0;
  std::uint64_t size = 0;
  std::string name;
};

/// Parses one entry, and nothing else. "start" and "size" are unsigned numbers or hexadecimal
/// strings; "name_bytes" takes precedence over "name"; other members are ignored, but a "schema"
/// other than perfmap's is an error. Fails with bad_format; `where` is the place in the line.
PERFMAP_API Result<JsonEntry> entry_from_json(std::string_view line);

/// Converts perfmap's JSON, in either form, to the text of a perf map; white space alone gives an
/// empty text. Entries keep their order, and their exact names if a map can hold them. Other names
/// (empty, with a newline, with a leading blank) are escaped by escape_map_name() and counted. The
/// first error ends it: fails with bad_format; `where` has line and column in the whole text, also
/// for JSON lines.
PERFMAP_API Result<MapText> map_text_from_json(std::string_view json);

/// Jitdumps as JSON; docs/schema/perfmap.map-1.json is the schema.
///
/// One object: {"schema":"perfmap.map/1","source":{…,"kind":"jitdump"},"header":{…},"entries":[…],
/// "records":[…],"problems":[…]}. An entry is a LOAD: {"start","size","name","offset","time","pid",
/// "tid","index"}, with "vma" if that is another address, "code" (base64) with `with_code`, and
/// "lines", corrected by JitDetails. A record of another kind has its "kind", "offset", "time" and
/// fields as in the file. Offsets are those of the records in the file, so that their order can be
/// restored. A body whose fields do not reproduce its exact bytes is in "body" (base64).
///
/// Times are strings: "SECONDS.NANOSECONDS", or ticks without a point if the dump has ticks. If
/// `with_code` was true and nothing was damaged, dump_from_json() restores the dump byte for byte.
///
/// As JSON lines: the first line has "schema", "source" and "header"; then a line for each record
/// in file order. Damage goes to `problems`. O(bytes); uses the memory of JitDetails.
PERFMAP_API void write_dump_json(const Jitdump& dump, OutputFile& out, Diagnostics& problems,
                                 bool with_code);
PERFMAP_API void write_dump_jsonl(const Jitdump& dump, OutputFile& out, Diagnostics& problems,
                                  bool with_code);

/// Writes the code that exists at `time`: the parts from Timeline::for_each_at(), each an entry
/// with the fields of its LOAD. As one object of that schema, or as JSON lines. `problems` are
/// those of building the timeline.
PERFMAP_API void write_timeline_json(const Timeline& timeline, std::uint64_t time, OutputFile& out,
                                     const Diagnostics& problems);
PERFMAP_API void write_timeline_jsonl(const Timeline& timeline, std::uint64_t time,
                                      OutputFile& out);

/// Whether this JSON was written from a jitdump by the functions above. Reads only both ends of it.
PERFMAP_API bool is_dump_json(std::string_view json) noexcept;

/// Converts JSON, in either form, to a jitdump in the byte order that its header names. Fails with
/// bad_format if something is wrong, or if zeros would make the dump larger than `max_bytes`,
/// before they are made; `where` is the end of the wrong record. Holds the dump in memory.
PERFMAP_API Result<JitdumpBytes> dump_from_json(std::string_view json,
                                                std::uint64_t max_bytes = JitdumpBytes::kMaxBytes);

/// An ELF file that a process had mapped when its snapshot was taken. The snapshot has no copy of
/// it.
struct SnapshotModule {
  std::string path;          ///< raw bytes; without " (deleted)"
  std::string build_id;      ///< raw bytes; empty if the file has none or could not be opened
  std::uint64_t size = 0;    ///< of the file; 0 if it could not be opened
  bool was_deleted = false;  ///< the file at that path may have been another file

  friend bool operator==(const SnapshotModule&, const SnapshotModule&) = default;
};

/// A file that was copied into a snapshot.
struct SnapshotFile {
  enum class Kind : std::uint8_t { map, dump, images, vdso };

  Kind kind = Kind::map;
  std::string path;           ///< in the snapshot: relative, "/" between its parts
  std::string source;         ///< the original path, as seen by the process that took the snapshot
  std::uint32_t owner = 0;    ///< uid
  std::int64_t mtime_ns = 0;  ///< since 1970
  std::uint64_t size = 0;     ///< bytes that were copied
  /// bytes at its end that were not copied: an incomplete line, or too many
  std::uint64_t cut = 0;
  std::uint64_t address = 0;  ///< of the vdso in memory

  friend bool operator==(const SnapshotFile&, const SnapshotFile&) = default;
};

/// The contents of a snapshot's manifest.json: see docs/format-snapshot.md.
struct SnapshotManifest {
  pid_t pid = 0;  ///< as seen by the process that took the snapshot
  /// NStgid: the pid in each pid namespace, that of the snapshot's taker first
  std::vector<pid_t> namespace_pids;
  /// The processes that it was forked from and has memory from, the nearest first. Their files are
  /// also in the snapshot.
  std::vector<pid_t> parents = {};
  std::string comm;
  std::string executable;        ///< the program's path; empty if it could not be read
  std::uint32_t uid = 0;         ///< effective
  std::uint64_t start = 0;       ///< clock ticks since boot
  std::int64_t boot_ns = 0;      ///< time of boot, since 1970
  std::int64_t taken_at_ns = 0;  ///< since 1970
  std::string kernel;            ///< uname(2): release
  std::string machine;           ///< and machine, such as "x86_64"
  std::vector<SnapshotModule> modules;
  std::vector<SnapshotFile> files;
  std::vector<std::string> left_out;  ///< files that were not trusted, one line each

  friend bool operator==(const SnapshotManifest&, const SnapshotManifest&) = default;
};

/// "map", "dump", "images" (kImagesName) or "vdso".
PERFMAP_API std::string_view to_string(SnapshotFile::Kind kind) noexcept;

/// Writes the JSON of schema perfmap.snapshot/1; does not commit `out`.
PERFMAP_API void write_manifest(const SnapshotManifest& manifest, OutputFile& out);

/// Parses a manifest. Fails with bad_format, and names the wrong member; with unsupported for JSON
/// of another schema. Paths of files must be relative, without "..".
PERFMAP_API Result<SnapshotManifest> parse_manifest(std::string_view json);

/// A file of a recording directory that names code, by its recording.json.
struct RecordedFile {
  std::string path;  ///< the name in the directory
  pid_t pid = 0;     ///< of its process, as in the recording
  bool is_dump = false;

  friend bool operator==(const RecordedFile&, const RecordedFile&) = default;
};

/// Parses the list of files in recording.json; see docs/format-recording.md. Fails as
/// parse_manifest(). Paths must be names, without "/".
PERFMAP_API Result<std::vector<RecordedFile>> parse_recorded_files(std::string_view json);

/// The name of a copy of an ELF file in a recording directory: this, and its build ID.
inline constexpr std::string_view kCopiedModulePrefix = "elf-";

/// A copy of an ELF file in a recording directory, by its recording.json.
struct RecordedModule {
  std::string path;        ///< the name in the directory
  std::string source;      ///< the path that processes had mapped
  std::string build_id;    ///< raw bytes; empty: it has none
  std::uint64_t size = 0;  ///< 0: unknown

  friend bool operator==(const RecordedModule&, const RecordedModule&) = default;
};

/// Parses the list of these copies; none if there is no list. Fails as parse_recorded_files().
PERFMAP_API Result<std::vector<RecordedModule>> parse_recorded_modules(std::string_view json);

/// A perf map or jitdump that a recording directory does not have, by its recording.json.
struct MissingFile {
  std::string source;  ///< where it was
  pid_t pid = 0;       ///< of the process whose code it names
  std::string why;     ///< why it was not copied

  friend bool operator==(const MissingFile&, const MissingFile&) = default;
};

/// Parses the list of these files; none if there is no list. Fails as parse_recorded_files().
PERFMAP_API Result<std::vector<MissingFile>> parse_missing_files(std::string_view json);

}  // namespace perfmap
