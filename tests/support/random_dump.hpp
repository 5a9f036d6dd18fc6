// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <random>
#include <string>

#include "support/jitdump_bytes.hpp"

namespace perfmap::test {

/// A dump as runtimes write it: line and unwinding information of a function before its LOAD.
/// Sometimes with unknown records, MOVEs and LOADs without code.
inline std::string random_dump(std::mt19937& random, std::endian order, std::size_t functions) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  DumpBytes bytes(order);
  bytes.header();
  std::uint64_t time = 1'000'000'000;
  for (std::size_t i = 0; i < functions; ++i) {
    time += below(1000);
    const Address address = 0x7f0000000000 + i * 0x100;
    const std::string name = "function" + std::string(below(30), 'x') + std::to_string(i);
    std::string code;
    for (std::uint64_t k = below(60); k > 0; --k) code += static_cast<char>(random());
    if (below(3) == 0) {
      bytes.debug_info(time, address, {{address, 1, 2, "a.js"}, {address + 4, 2, 0, "\xff"}},
                       below(8));
    }
    if (below(3) == 0) bytes.unwinding(time, "frame-bytes-\x01\x1b\x03\x3b....", 8, 0, below(8));
    if (below(9) == 0) bytes.prefix(77, 24, time).u64(5);
    bytes.load(time, address, name, code, i);
    if (below(9) == 0) bytes.move(time, address, address + 0x100000, code.size(), i);
  }
  return bytes.text();
}

}  // namespace perfmap::test
