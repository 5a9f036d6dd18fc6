// SPDX-License-Identifier: MIT
// The code that the host compiles and runs: functions with mangled names. See host.cpp.
#include <cstdint>

namespace work {

struct Totals {
  std::uint64_t sum = 0;
  [[gnu::noinline]] explicit Totals(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n / 4; ++i) sum += i ^ (sum >> 5);
  }
};

[[gnu::noinline]] std::uint64_t leaf(std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += (i * 2654435761u) ^ (sum >> 3);
  return sum;
}

template <class T>
[[gnu::noinline]] std::uint64_t middle(T n, int depth) {
  const Totals totals(n);
  std::uint64_t sum = leaf(n) + totals.sum;
  if (depth != 0) sum += middle<T>(n, depth - 1);
  return sum + 1;
}

}  // namespace work

extern "C" std::uint64_t outer(std::uint64_t n) { return work::middle(n, 3) * 3 + 1; }
