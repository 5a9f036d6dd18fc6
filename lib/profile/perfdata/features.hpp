#pragma once

#include <cstdint>
#include <string_view>

#include "perfdata/description.hpp"

namespace perfmap {

/// Takes in a feature section, the same in a file and in a HEADER_FEATURE record. Those that say
/// nothing of use here are passed by, and so is what does not fit into `bytes`.
void read_feature(std::uint64_t feature, std::string_view bytes, Description& description);

/// Takes in one BUILD_ID record, its header included.
void read_build_id(std::string_view record, Description& description);

}  // namespace perfmap
