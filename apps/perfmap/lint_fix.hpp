#pragma once

#include <perfmap/diagnostic.hpp>

#include "console.hpp"
#include "lint_source.hpp"

namespace perfmap::app {

struct FixOptions {
  bool fix = false;
  bool diff = false;
  bool force = false;
};

/// Where a rule with a safe fix has found something: writes the map as `tidy` would, or the dump
/// with its safe fixes, in its place, or prints the difference: of a map a unified diff, of a dump
/// a line for each change. Answers whether there was something to fix.
Result<bool> apply_fixes(const LintSource& source, const Diagnostics& found,
                         const FixOptions& options, const Console& console);

}  // namespace perfmap::app
