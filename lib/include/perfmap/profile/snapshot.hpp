#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/json.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A process as it was once: what /proc said of it, its perf map, its jitdumps, and the build-ids
/// of the ELF files that it had mapped, in one directory. That is laid out like the roots of a
/// machine where nothing but this process lives; so whoever takes Roots takes those of a snapshot,
/// on whatever machine, after the process has gone. See docs/format-snapshot.md.
///
/// A bundle that somebody else made is not believed: no link in it is followed, and sizes are
/// bounded. Files in it belong to whoever unpacked it: open with `any_owner`.
///
/// Const members may be used from several threads. Holds no descriptor.
class PERFMAP_API Snapshot {
 public:
  /// Fails with unsupported where the directory has no manifest, or one of another schema; with
  /// bad_format where it makes no sense; with not_found, io or refused as opening does.
  static Result<Snapshot> open(const std::string& directory);
  /// Whether it is worth while to open() it: a directory that has a manifest.
  static bool is_at(const std::string& directory) noexcept;

  /// As the one who took it saw it: the name of its directory below roots().proc.
  pid_t pid() const noexcept { return manifest_.pid; }
  /// Absolute, whatever open() was given.
  const Roots& roots() const noexcept { return roots_; }
  const std::string& directory() const noexcept { return directory_; }
  const SnapshotManifest& manifest() const noexcept { return manifest_; }

  /// Of the mapped ELF files, by path.
  std::span<const SnapshotModule> build_ids() const noexcept { return manifest_.modules; }
  /// Raw bytes; empty where the process had no such file mapped, or that has no build-id. O(log n).
  std::string_view build_id_of(std::string_view path) const noexcept;

  /// The bytes of [vdso], an ELF file; nothing where the snapshot has none.
  Result<std::optional<Input>> vdso() const;

 private:
  Snapshot(std::string directory, SnapshotManifest manifest);
  std::string directory_;
  Roots roots_;
  SnapshotManifest manifest_;
};

struct SnapshotOptions {
  bool any_owner = false;  ///< of the process's map and dumps; see find_process_map()
  /// A command line may hold passwords. The environment, which does more often, is never taken.
  bool with_command_line = false;
  /// Of each file and of all together; what is beyond is cut, and told in the manifest.
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

/// What became of the process while its files were copied.
enum class SnapshotEnd : std::uint8_t {
  lives,     ///< nothing
  ended,     ///< the bundle is whole, but what the process wrote at the last may lack
  executed,  ///< the same, by another program in the same process
};

struct TakenSnapshot {
  SnapshotManifest manifest;
  SnapshotEnd end = SnapshotEnd::lives;
  std::uint64_t regions = 0;  ///< of its memory
};

/// Writes a snapshot of a living process to `directory`, which must not be there, or be empty. It
/// is made beside it, and renamed when it is whole: nothing is left of one that failed. Directories
/// have mode 0700, files 0600. `roots` are those of `process`.
///
/// A map is cut behind its last whole line; a dump's last record may be half there, as in any dump
/// that is still written. Memory map and program belong together: a process that execs meanwhile
/// is looked at anew. Nothing where the process is gone before enough of it was seen.
PERFMAP_API Result<std::optional<TakenSnapshot>> take_snapshot(const ProcSource& process,
                                                               const Roots& roots,
                                                               const std::string& directory,
                                                               const SnapshotOptions& options = {});

}  // namespace perfmap
