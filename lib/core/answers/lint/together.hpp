#pragma once

#include "perfmap/lint.hpp"

namespace perfmap::lint_rules {

/// XF001, XF002: the map and the dump of one process, as they are at their end.
void compare_code(const LintedFile& map, const LintedFile& dump);

}  // namespace perfmap::lint_rules
