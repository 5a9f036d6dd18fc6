#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "map/segments.hpp"
#include "perfmap/range_check.hpp"

namespace perfmap::lint_rules {

/// for_each_conflict() for whoever has read and sorted the entries of these maps already.
void for_each_conflict(const Columns& sorted, std::span<const Map> maps,
                       const std::function<void(const RangeFinding&)>& visit);

/// Names may be as long as a file; a message is one line for people. Cut between two characters.
std::string_view shortened(std::string_view name) noexcept;

}  // namespace perfmap::lint_rules
