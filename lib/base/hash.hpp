// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

namespace perfmap {

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325;

/// FNV-1a. `before` is the hash of the bytes before these.
constexpr std::uint64_t hash_of_bytes(std::string_view bytes,
                                      std::uint64_t before = kHashOfNothing) noexcept {
  for (const char byte : bytes) {
    before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return before;
}

}  // namespace perfmap
