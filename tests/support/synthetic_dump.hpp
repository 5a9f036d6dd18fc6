// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace perfmap::test {

/// Parameters of a synthetic jitdump. Equal parameters give the same bytes on every machine.
struct SyntheticDump {
  std::size_t loads = 1'000'000;
  unsigned reused_percent = 0;  ///< of the LOADs, which overlap parts of earlier ones
  bool one_page = false;        ///< instead: all LOADs in the same page
  std::uint64_t seed = 1;
};

/// A jitdump as a large JIT-compiled program would write it: the names and ranges of
/// synthetic_map(), and a LOAD with its code every 1000 ns. In this machine's byte order.
std::string synthetic_dump(const SyntheticDump& wishes);

}  // namespace perfmap::test
