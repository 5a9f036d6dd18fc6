#pragma once

#include "answers/lint/line_rules.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"

namespace perfmap::lint_rules {

/// PM009, PM061-PM063, PM068-PM070: the file as such.
void check_file(const Map& map, Diagnostics& problems);

/// PM067: how much there is.
void check_amount(const Map& map, const LineFacts& facts, Diagnostics& problems);

}  // namespace perfmap::lint_rules
