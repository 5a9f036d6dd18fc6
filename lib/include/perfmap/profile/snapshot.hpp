// SPDX-License-Identifier: MIT
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

/// A process as it was at an earlier time: its files in /proc, its perf map, its jitdumps, and the
/// build-ids of the ELF files that it had mapped, in one directory. The directory is laid out like
/// the root of a machine with only this process. So functions that take Roots can take those of a
/// snapshot, on any machine, after the process has ended. See docs/format-snapshot.md.
///
/// A snapshot from someone else is not trusted: no link in it is followed, and sizes are bounded.
/// Its files belong to the user who unpacked it: open them with `any_owner`.
///
/// Several threads may use const members. Holds no descriptor.
class PERFMAP_API Snapshot {
 public:
  /// Fails with unsupported if the directory has no manifest, or one of another schema; with
  /// bad_format if the manifest is invalid; with not_found, io or refused if opening fails.
  static Result<Snapshot> open(const std::string& directory);
  /// Whether the directory may be a snapshot: it has a manifest.
  static bool is_at(const std::string& directory) noexcept;

  /// As seen by the process that took it: the name of its directory below roots().proc.
  pid_t pid() const noexcept { return manifest_.pid; }
  /// Absolute, even if open() got a relative path.
  const Roots& roots() const noexcept { return roots_; }
  const std::string& directory() const noexcept { return directory_; }
  const SnapshotManifest& manifest() const noexcept { return manifest_; }

  /// Of the mapped ELF files, by path.
  std::span<const SnapshotModule> build_ids() const noexcept { return manifest_.modules; }
  /// Raw bytes; empty if the process had not mapped such a file, or if that has no build-id. O(log
  /// n).
  std::string_view build_id_of(std::string_view path) const noexcept;

  /// The bytes of [vdso], an ELF file; nothing if the snapshot has none.
  Result<std::optional<Input>> vdso() const;

 private:
  Snapshot(std::string directory, SnapshotManifest manifest);
  std::string directory_;
  Roots roots_;
  SnapshotManifest manifest_;
};

struct SnapshotOptions {
  bool any_owner = false;  ///< for the process's map and dumps; see find_process_map()
  /// A command line may contain passwords. The environment, which does so more often, is never
  /// copied.
  bool with_command_line = false;
  /// Limit for each file and for the total; the rest is cut off, and recorded in the manifest.
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

/// What happened to the process while its files were copied.
enum class SnapshotEnd : std::uint8_t {
  lives,     ///< it is still alive
  ended,     ///< it ended: the snapshot is complete, except perhaps its last writes
  executed,  ///< as `ended`, by executing another program
};

struct TakenSnapshot {
  SnapshotManifest manifest;
  SnapshotEnd end = SnapshotEnd::lives;
  std::uint64_t regions = 0;  ///< number of regions of its memory
};

/// Writes a snapshot of a living process to `directory`, which must not exist, or be empty. It is
/// written under another name in the same parent directory, and renamed when complete: a failure
/// leaves nothing. Directories have mode 0700, files 0600. `roots` are those of `process`.
///
/// A map is cut after its last whole line; a dump's last record may be incomplete, as in any dump
/// that is still being written. Memory map and program belong together: if the process execs
/// meanwhile, it is read again. Nothing if the process ends before enough of it was read.
PERFMAP_API Result<std::optional<TakenSnapshot>> take_snapshot(const ProcSource& process,
                                                               const Roots& roots,
                                                               const std::string& directory,
                                                               const SnapshotOptions& options = {});

}  // namespace perfmap
