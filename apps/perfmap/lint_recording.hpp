#pragma once

#include <perfmap/diagnostic.hpp>
#include <string>
#include <vector>

#include "lint_source.hpp"

namespace perfmap::app {

/// Holds the files against a recording of their processes: see lint_recording().
Result<void> check_recording(const std::string& path, const LintSources& sources,
                             std::vector<Diagnostics>& all, const Console& console);

}  // namespace perfmap::app
