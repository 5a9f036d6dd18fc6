#pragma once

#include <string_view>

#include "perfmap/stacks.hpp"
#include "stacks/raw_stack.hpp"

namespace perfmap {

/// Whether the sample is asked for. O(what the filter lists).
bool passes(const StackFilter& filter, const RawStack& stack, std::string_view event) noexcept;

}  // namespace perfmap
