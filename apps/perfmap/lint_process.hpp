#pragma once

#include <perfmap/diagnostic.hpp>

#include "lint_source.hpp"

namespace perfmap::app {

/// Holds the files of each process against the process: see lint_process(). Findings about files
/// that were not read become sources without text, at the end. `wanted` collects nothing but says
/// which rules count. Fails where nothing at all is known about the files of a process.
Result<void> check_processes(LintSources& sources, std::vector<Diagnostics>& all,
                             const Diagnostics& wanted, const SourceOptions& options,
                             const Console& console);

}  // namespace perfmap::app
