#pragma once

#include <cstddef>
#include <vector>

#include "perfmap/recording.hpp"

namespace perfmap {

/// Sorts records by their times; those of equal times keep their order. `scratch` is room that may
/// be used again. O(n log k) for k stretches that are in order: what comes from a few processors in
/// turns has few of them.
void sort_by_time(std::vector<RecordView>& records, std::vector<RecordView>& scratch);

}  // namespace perfmap
