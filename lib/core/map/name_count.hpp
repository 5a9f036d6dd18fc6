// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "perfmap/runtimes.hpp"

namespace perfmap {

/// Adds with saturation: hostile sizes from a file would wrap a plain sum.
inline void add_size(std::uint64_t& sum, std::uint64_t size) noexcept {
  sum += std::min(size, std::numeric_limits<std::uint64_t>::max() - sum);
}

/// Counts distinct names by 64-bit hash (8 bytes a name), and the runtimes that they look like.
class NameCount {
 public:
  void reserve(std::size_t names) { hashes_.reserve(names); }
  void add(std::string_view name) {
    hashes_.push_back(std::hash<std::string_view>{}(name));
    ++runtimes_[static_cast<std::size_t>(decode_name(name).runtime)];
  }
  /// O(n log n).
  std::uint64_t different() {
    std::sort(hashes_.begin(), hashes_.end());
    return static_cast<std::uint64_t>(std::unique(hashes_.begin(), hashes_.end()) -
                                      hashes_.begin());
  }
  /// The runtime with the most names.
  Runtime runtime() const noexcept {
    const auto* const max = std::max_element(runtimes_.begin() + 1, runtimes_.end());
    return *max == 0 ? Runtime::unknown : static_cast<Runtime>(max - runtimes_.begin());
  }

 private:
  std::vector<std::uint64_t> hashes_;
  std::array<std::uint64_t, 32> runtimes_{};
};

}  // namespace perfmap
