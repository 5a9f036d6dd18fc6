#pragma once

#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// The unified diff from `before` to `after`, with three lines of context, as patch(1) takes it;
/// empty where they are equal. Finds a small difference exactly; where texts differ so much that
/// this would take long, the part between their common beginning and end is replaced as a whole.
PERFMAP_API std::string unified_diff(std::string_view before, std::string_view after,
                                     std::string_view name);

}  // namespace perfmap
