#pragma once

#include <cstdint>
#include <string>

namespace perfmap::test {

/// A log of PyPy as one with jit-profile sections would write it: loops and bridges are traced
/// (jit-tracing, jit-log-noopt of 80 operations) and, the first time, compiled (jit-backend-dump,
/// jit-backend-addr, jit-log-opt-loop of as many), and after each trace entered and left 150 times,
/// with a minor collection now and then. A line has 49 bytes on average, without traces 37.
struct SyntheticLog {
  std::uint64_t bytes = 1 << 20;  ///< at least
  bool compiled = true;           ///< false: jit-profile and gc sections alone
  unsigned loops = 400;
  unsigned seed = 1;
};
void write_synthetic_log(const std::string& path, const SyntheticLog& wishes);

}  // namespace perfmap::test
