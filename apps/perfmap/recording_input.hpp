#pragma once

#include <perfmap/recording.hpp>
#include <string>

namespace perfmap::app {

/// The bytes of a recording as it was named on the command line, whatever they are.
Result<Input> open_recording_input(const std::string& path);
/// Opens a recording as it was named on the command line; "-" is standard input.
Result<Recording> open_recording(const std::string& path);

}  // namespace perfmap::app
