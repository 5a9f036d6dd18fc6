// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace perfmap {

/// "12.345 s", rounded.
inline std::string seconds(std::uint64_t ns) {
  const std::uint64_t ms = ns / 1'000'000 + (ns % 1'000'000 >= 500'000 ? 1 : 0);
  std::string decimals = std::to_string(ms % 1000);
  decimals.insert(0, 3 - decimals.size(), '0');
  return std::to_string(ms / 1000) + "." + decimals + " s";
}

}  // namespace perfmap
