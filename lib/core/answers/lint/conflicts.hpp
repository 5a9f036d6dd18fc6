#pragma once

#include <functional>
#include <span>

#include "index/columns.hpp"
#include "perfmap/range_check.hpp"

namespace perfmap::lint_rules {

/// for_each_conflict() for whoever has read and sorted the entries of these maps already.
void for_each_conflict(const Columns& sorted, std::span<const Map> maps,
                       const std::function<void(const RangeFinding&)>& visit);

}  // namespace perfmap::lint_rules
