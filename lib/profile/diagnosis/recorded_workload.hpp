#pragma once

#include <string>

#include "diagnosis/recorded_case.hpp"

namespace perfmap {

/// Takes the arguments and variables that the command line of perf gives to a process which has
/// ended, where perf started its program, or a script that names the program.
void take_workload(const std::string& comm, const RecordingContext& context, RecordedView& into);

}  // namespace perfmap
