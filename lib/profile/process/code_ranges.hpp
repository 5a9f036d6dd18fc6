// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "perfmap/profile/process.hpp"
#include "process/region_tree.hpp"

namespace perfmap {

// Memory that was executable stays code until it is unmapped or replaced, even if it is not
// executable at the moment. Runtimes that never map memory as writable and executable remove the
// execute right from a page while they write to it, and return addresses may still point into that
// page.

/// Applies a change of the memory, including anonymous memory, except where it only removes the
/// execute right from code. O(log n), plus the regions that it covers.
void apply_keeping_code(RegionTree& tree, const Region& change);

/// Whether such a change of data would do nothing, as it covers nothing but code that shows the
/// same content. O(log n), plus the regions that it covers.
bool keeps_all_code(const RegionTree& tree, const Region& data);

/// `now` is a later state of the memory of the same program. Returns it with all memory marked
/// executable that was code `before` and still shows the same content. O(n).
std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now);

}  // namespace perfmap
