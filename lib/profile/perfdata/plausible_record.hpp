#pragma once

#include <cstdint>
#include <string_view>

#include "perfdata/record_header.hpp"

namespace perfmap {

/// Where in `bytes`, from `from` on, records go on: several one after the other, of known types and
/// large enough for them. bytes.size() where they do not. O(n).
std::size_t find_records(std::string_view bytes, std::size_t from, bool swapped) noexcept;

}  // namespace perfmap
