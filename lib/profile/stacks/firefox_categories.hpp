#pragma once

#include <cstdint>

#include "perfmap/json_writer.hpp"
#include "perfmap/stack_sample.hpp"

namespace perfmap {

/// The value of "categories": one for each CodeClass, in its order, with tiers as subcategories.
void write_firefox_categories(JsonWriter& json);

/// The subcategory of a function in the category of its class; 0: none of its own.
std::uint32_t firefox_subcategory(const FrameFunction& function) noexcept;

}  // namespace perfmap
