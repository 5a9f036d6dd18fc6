// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace perfmap {

/// "12.34%" of millionths, rounded.
inline std::string percent_text(std::uint64_t ppm) {
  const std::uint64_t hundredths = (ppm + 50) / 100;
  std::string decimals = std::to_string(hundredths % 100);
  decimals.insert(0, 2 - decimals.size(), '0');
  return std::to_string(hundredths / 100) + "." + decimals + "%";
}

}  // namespace perfmap
