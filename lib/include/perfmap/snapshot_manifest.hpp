#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

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
