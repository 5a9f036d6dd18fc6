#pragma once

#include <perfmap/input.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/recording.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/profile/stacks.hpp>
#include <string>

#include "source.hpp"

namespace perfmap::app {

/// What the options of a command say of the files of recorded processes.
struct RecordedSourceOptions {
  std::string map_dir;  ///< --map-dir: a directory of maps and dumps, or a snapshot
  std::string symfs;    ///< --symfs
  bool any_owner = false;
};

/// Fails where --map-dir is a snapshot that cannot be read.
Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options);

/// Reports what was refused, and for files of other users the command that takes them.
void report_refused(const RecordedRefusals& refused, const Console& console);
/// That command alone.
void advise_on_foreign(const RecordedRefusals& refused, const Console& console);

/// Reports why kernel frames have no names, if the reader asked for them; call it at the end.
void note_kernel(const KernelSource& kernel, const Console& console);

}  // namespace perfmap::app
