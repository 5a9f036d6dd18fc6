#pragma once

#include "answers/lint/line_rules.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"

namespace perfmap::lint_rules {

/// PM090, PM093, PM095: what the names say, taken together, about who wrote them and how that was
/// started. Guesses: a few thousand names are looked at, and all of them only where those are
/// suspicious.
void check_producers(const Map& map, const LineFacts& facts, Diagnostics& problems);

}  // namespace perfmap::lint_rules
