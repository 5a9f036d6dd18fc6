#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/process_files.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/stacks.hpp"

namespace perfmap {

/// Where the perf maps and jitdumps of recorded processes are looked for.
struct RecordedJitOptions {
  Roots roots = {};
  std::string directory = {};  ///< perf-PID.map and the dumps, by their names; instead of the rest
  std::string symfs = {};      ///< paths of dumps are looked up below it
  /// Files of anybody are believed, not only ours and root's.
  bool any_owner = false;
  Overlap overlap = Overlap::last;
  /// For every process, instead of what could be found: the caller's.
  std::shared_ptr<JitSources> given = nullptr;
};

/// For StackOptions::find_jit: finds the dumps that a process had mapped, by their paths, and
/// perf-PID.map, in /tmp or, of a process that still lives, in its own. Of a recording that tells
/// the time of day, a map that is older than its process is not believed. Links, FIFOs and the like
/// are refused. What is there and refused goes to `refused`, which must live as long as the answer.
PERFMAP_API StackOptions::FindJit find_recorded_jit(const RecordingFacts& facts,
                                                    RecordedJitOptions options,
                                                    std::vector<Error>& refused);

/// Opens the dump that a recorded process had mapped at a path, found in the same way: for
/// InjectOptions::open_dump. `maps` and `dumps` of the options do not count.
PERFMAP_API std::function<Result<Jitdump>(const std::string& path)> open_recorded_dump(
    RecordedJitOptions options);

}  // namespace perfmap
