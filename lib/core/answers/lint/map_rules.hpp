#pragma once

#include "answers/lint/line_rules.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"

namespace perfmap::lint_rules {

/// PM101-PM105, PM110, PM113, PM114: the ranges, taken together. Sorts `facts.entries`.
void check_ranges(const Map& map, LineFacts& facts, Diagnostics& problems);

/// PM022, PM033: the names, taken together.
void check_names_together(const Map& map, const LineFacts& facts, Diagnostics& problems);

}  // namespace perfmap::lint_rules
