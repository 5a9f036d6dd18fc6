#pragma once

#include <perfmap/recording.hpp>
#include <string>

namespace perfmap::app {

/// Opens a recording as it was named on the command line; "-" is standard input.
Result<Recording> open_recording(const std::string& path);

}  // namespace perfmap::app
