#pragma once

#include <perfmap/diagnostic.hpp>
#include <perfmap/map.hpp>

#include "console.hpp"

namespace perfmap::app {

struct FixOptions {
  bool fix = false;
  bool diff = false;
  bool force = false;
};

/// Where a rule with a safe fix has found something: writes the map as `tidy` would, in its place,
/// or prints the difference. Answers whether there was something to fix.
Result<bool> apply_fixes(const Map& map, const Diagnostics& found, const FixOptions& options,
                         const Console& console);

}  // namespace perfmap::app
