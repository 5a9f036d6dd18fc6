// SPDX-License-Identifier: MIT
#include "base/layouts.hpp"

#include "perfmap.h"

namespace {

// clang-format off
constexpr perfmap_layout kLayouts[] = {
    PERFMAP_LAYOUT(perfmap_entry, struct_size, start, size, name, name_size, offset, map)
    PERFMAP_LAYOUT(perfmap_code, struct_size, start, size, name, name_size, since, until, offset,
                   index, bytes)
    PERFMAP_LAYOUT(perfmap_finding, struct_size, rule, severity, fixable, line, column, offset,
                   message)
    PERFMAP_LAYOUT(perfmap_name, struct_size, runtime, tier, function, function_size, file,
                   file_size, line, column)
    PERFMAP_LAYOUT(perfmap_name_part, text, size)
};
// clang-format on

}  // namespace

const perfmap_layout* perfmap_layouts(size_t* count) {
  *count = sizeof kLayouts / sizeof *kLayouts;
  return kLayouts;
}
