#pragma once

#include <string>

#include "perfdata/attributes.hpp"

namespace perfmap {

/// What perf would call an event of these attributes: "cpu-clock:u", "raw 0x1a8".
std::string made_up_name(const Attributes& attributes);

}  // namespace perfmap
