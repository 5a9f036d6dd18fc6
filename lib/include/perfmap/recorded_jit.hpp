#pragma once

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/inject.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/process_files.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/snapshot.hpp"
#include "perfmap/stacks.hpp"

namespace perfmap {

/// A perf map or jitdump of a recorded process that was not used because of its owner.
struct ForeignFile {
  pid_t pid = 0;
  std::string comm;  ///< of the process; raw bytes
  std::string path;  ///< raw bytes
  uid_t owner = 0;
  std::string why;  ///< which condition does not hold: one clause, such as "it has 2 links"
};
/// "foreign-owner: /tmp/perf-42.map of process 42 (node) belongs to user 1001 and was not used: it
/// has 2 links".
PERFMAP_API std::string to_string(const ForeignFile& file);

/// Where the perf maps and jitdumps of recorded processes are looked for.
struct RecordedJitOptions {
  Roots roots = {};
  std::string directory = {};  ///< perf-PID.map and the dumps, by their names; instead of the rest
  /// Of one of the processes; instead of the rest. It has no files of other processes but those
  /// that this one was forked from.
  std::shared_ptr<const Snapshot> snapshot = nullptr;
  std::string symfs = {};  ///< paths of dumps are looked up below it
  /// Files of anybody are believed, not only those of the process's user, ours and root's.
  bool any_owner = false;
  Overlap overlap = Overlap::last;
  /// For every process, instead of what could be found: the caller's.
  std::shared_ptr<JitSources> given = nullptr;
};

/// What was found and not used; lives as long as the answers of the functions below.
struct RecordedRefusals {
  std::vector<ForeignFile> foreign;
  std::vector<Error> others;  ///< links, FIFOs, files that are older than their process
};

/// For StackOptions::find_jit: finds the dumps that a process had mapped, by their paths, and
/// perf-PID.map. Links, FIFOs and the like are refused.
///
/// Of a process that still lives, as its name, its machine and the times of its beginning tell,
/// they are looked for in its own root, and its user's are believed, as find_process_map() does.
/// Of one that is gone they are looked for on this machine, and root's and ours are believed; those
/// of another user if all of this holds, and then their names have Doubt::guessed_owner:
///   - a regular file with one link,
///   - last written, and last given a name, an owner or a mode, while the process was recorded,
///   - a dump whose header has the process's pid,
///   - all of the process's files that pass these tests have one owner.
/// A map that is older than its process is not believed, as far as times can be compared; names of
/// one that was written after the process had ended have Doubt::guessed_owner.
///
/// Borrows the recording, which is read once more when a process that is gone has files of another
/// user.
PERFMAP_API StackOptions::FindJit find_recorded_jit(const Recording& recording,
                                                    RecordedJitOptions options,
                                                    RecordedRefusals& refused);
/// The same where no recording tells of the process, which then is taken for gone.
PERFMAP_API StackOptions::FindJit find_recorded_jit(RecordedJitOptions options,
                                                    RecordedRefusals& refused);

/// For StackOptions::find_parents: of a process that still lives, or of which `options` have a
/// snapshot; see living_parents(). None where `options` have other sources. Borrows the recording.
PERFMAP_API StackOptions::FindParents find_recorded_parents(const Recording& recording,
                                                            RecordedJitOptions options);

/// Opens the dump that a recorded process had mapped at a path, found in the same way: for
/// InjectOptions::open_dump. `given` and `overlap` of the options do not count. Reads the recording
/// once more at the first call. Fails with refused for a file that is not used; a foreign one is
/// told in `refused`, too.
PERFMAP_API
std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
open_recorded_dump(const Recording& recording, RecordedJitOptions options,
                   RecordedRefusals& refused);

}  // namespace perfmap
