#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace perfmap::test {

/// What a synthetic jitdump is like. The same wishes and seed give the same bytes on every machine.
struct SyntheticDump {
  std::size_t loads = 1'000'000;
  unsigned reused_percent = 0;  ///< of the LOADs, ranges laid over parts of earlier ones
  bool one_page = false;        ///< instead: all of them over the same page
  std::uint64_t seed = 1;
};

/// A jitdump as a large JIT-compiled program would write it: the names and ranges of
/// synthetic_map(), a LOAD every 1000 ns with its code behind it. In this machine's byte order.
std::string synthetic_dump(const SyntheticDump& wishes);

}  // namespace perfmap::test
