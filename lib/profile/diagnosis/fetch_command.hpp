#pragma once

#include <string>

#include "diagnosis/recorded_case.hpp"

namespace perfmap {

/// A command line that gets the ELF files of a recording's processes from the machine that made
/// it, and examines the recording with them; empty where it would be too long to paste. It gets all
/// of them, as --symfs is for all.
std::string fetch_command(const RecordingContext& context);

}  // namespace perfmap
