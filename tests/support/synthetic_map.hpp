// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace perfmap::test {

/// Parameters of a synthetic map. Equal parameters give the same bytes on every machine.
struct SyntheticMap {
  std::size_t entries = 1'000'000;
  unsigned reused_percent = 0;  ///< of the lines, which overlap parts of earlier ones
  std::uint64_t seed = 1;
};

/// A map as a large JIT-compiled program would write it: names like those of HotSpot, V8 and
/// CPython, 60 to 90 bytes per line, code in three regions (V8's code, its heap, HotSpot's code
/// cache), in random order except for short runs of neighbours.
std::string synthetic_map(const SyntheticMap& wishes);

/// Random addresses inside the entries of such a map; each entry is equally likely.
std::vector<std::uint64_t> addresses_in(const std::string& map, std::size_t count,
                                        std::uint64_t seed);

}  // namespace perfmap::test
