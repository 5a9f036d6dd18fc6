#pragma once

#include <perfmap/module_cache.hpp>
#include <perfmap/recorded_jit.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// What the options of a command say of the files of recorded processes.
struct RecordedSourceOptions {
  std::string map_dir;  ///< --map-dir: a directory of maps and dumps, or a snapshot
  std::string symfs;    ///< --symfs
  bool any_owner = false;
};

/// Fails where --map-dir is a snapshot that cannot be read.
Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options);

/// ELF files of recorded processes: by the build-ids of the recording and, where it has none, of
/// the snapshot, which has a vdso of its own.
ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache, const Recording& recording,
                                                 const RecordedJitOptions& jit);

/// Reports what was refused, and for files of other users the command that takes them.
void report_refused(const RecordedRefusals& refused, const Console& console);
/// That command alone.
void advise_on_foreign(const RecordedRefusals& refused, const Console& console);

}  // namespace perfmap::app
