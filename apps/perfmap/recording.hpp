// SPDX-License-Identifier: MIT
#pragma once

#include <perfmap/input.hpp>
#include <perfmap/profile/doctor.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/recording.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/profile/stacks.hpp>
#include <string>

#include "source.hpp"

namespace perfmap::app {

/// The options of a command about the files of recorded processes.
struct RecordedSourceOptions {
  std::string map_dir;  ///< --map-dir: a directory of maps and dumps, or a snapshot
  std::string symfs;    ///< --symfs
  bool any_owner = false;
  /// its path, after it was opened; that of a recording directory is the default map_dir
  std::string recording = {};
};

/// open_recording_input() and open_recording() of a recording, a recording directory, or an archive
/// of one, which is unpacked. The input of an archive has its name.
Result<Input> open_recorded_input(const std::string& path, const Console& console);
Result<Recording> open_recorded(const std::string& path, const Console& console);

/// Fails if a directory does not exist, or if --map-dir is a snapshot that cannot be read. Warns of
/// copies of ELF files that are damaged.
Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options,
                                                const Console& console);

/// Examines a recording: see diagnose_recording(). Adds to `refused`.
RecordingDiagnosis examine_recording(const Recording& recording, RecordedJitOptions jit,
                                     RecordedRefusals& refused);

/// Prints which files were refused.
void report_refused(const RecordedRefusals& refused, const Console& console);
/// Prints the command that accepts files of other users, if some were refused.
void advise_on_foreign(const RecordedRefusals& refused, const Console& console);

/// Prints why kernel frames have no names, if names were needed. Call it at the end.
void note_kernel(const KernelSource& kernel, const Console& console);

}  // namespace perfmap::app
