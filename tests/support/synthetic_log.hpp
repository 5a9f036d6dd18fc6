// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace perfmap::test {

/// A log as PyPy with jit-profile sections would write it: loops and bridges are traced
/// (jit-tracing, jit-log-noopt of 80 operations) and, the first time, compiled (jit-backend-dump,
/// jit-backend-addr, jit-log-opt-loop of as many operations). After each trace they are entered and
/// left 150 times, with an occasional minor collection. Lines have 49 bytes on average, or 37
/// without traces.
struct SyntheticLog {
  std::uint64_t bytes = 1 << 20;  ///< at least
  bool compiled = true;           ///< false: only jit-profile and gc sections
  unsigned loops = 400;
  unsigned seed = 1;
};
void write_synthetic_log(const std::string& path, const SyntheticLog& wishes);

}  // namespace perfmap::test
