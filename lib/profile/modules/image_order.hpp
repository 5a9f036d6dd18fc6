#pragma once

#include <vector>

#include "perfmap/timeline.hpp"

namespace perfmap {

/// The code of a LOAD record, and the place that it gets in an ELF file of all code.
struct OrderedCode {
  AddressRange range;  ///< where its LOAD put it
  std::uint64_t load = 0;
  bool has_code = false;
  Address place = 0;  ///< in the file, and its address there; 0: it has none
};

/// Where what has bytes ends, in the file: what has none lies behind.
struct OrderedEnds {
  Address code = 0;
  Address all = 0;
};

/// No code lies before that in the file: room for the headers.
inline constexpr Address kFirstPlace = 4096;
/// What places and the addresses of code are equal by, so that what maps the file needs no more.
inline constexpr std::uint64_t kPlaceAlignment = 64;

/// Gives places to code: none overlap, and those beside each other in memory are so in the file, as
/// far apart, where the gaps together are not much longer than the code. Whatever overlaps code
/// that comes before it in `all` lies on its own. No place ends behind `last`. O(n log n).
OrderedEnds order_code(std::vector<OrderedCode>& all, Address last);

}  // namespace perfmap
