#pragma once

#include <span>

#include "perfmap/lint.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Checks maps and dumps against a recording of their processes: JD302, XF004, XF005, and what of
/// JD107 and JD110 only a recording tells. `files` are those that lint() has gone over; findings go
/// to the files' Diagnostics, in the order of places.
///
/// A file belongs to the process in its name (perf-PID.map, jit-PID.dump), or else in the dump's
/// header; to the process that had mapped a dump of its name, if one had. Files of processes that
/// the recording does not have are silent but for JD107 and JD302.
///
/// Goes over the recording once; damage of it is passed over. Holds what ProcessTracker does, and
/// one counter for each page of the runtimes' memory that was sampled. O(n log n) for n records and
/// entries.
PERFMAP_API void lint_recording(const Recording& recording, std::span<const LintedFile> files);

}  // namespace perfmap
