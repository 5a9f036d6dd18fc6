#pragma once

#include <perfmap/process_modules.hpp>
#include <perfmap/recording.hpp>
#include <string>

namespace perfmap::app {

/// The bytes of a recording as it was named on the command line, whatever they are.
Result<Input> open_recording_input(const std::string& path);
/// Fails where writing there would replace the recording, which nobody can make again.
Result<void> check_other_file(const std::string& output, const Input& recording);
/// Opens a recording as it was named on the command line; "-" is standard input.
Result<Recording> open_recording(const std::string& path);

/// The build-ids of files, as perf noted them at the end of the recording.
ExpectedBuildId recorded_build_ids(const Recording& recording);

}  // namespace perfmap::app
