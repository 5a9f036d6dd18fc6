// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "perfmap_writer.h"

/// Structs that cross the C interface; each begins with struct_size. Needs libc alone.

namespace perfmap::capi {

/// The size below which a caller's struct is refused: that of release 0.1. When a struct grows,
/// specialize this with its former size; copy_in() then reads the new members as 0.
template <class T>
inline constexpr std::size_t kLeastSize = sizeof(T);

/// Without `reason` and `path`, as programs declare it that do not include the header.
template <>
inline constexpr std::size_t kLeastSize<perfmap_error> = offsetof(perfmap_error, reason);

/// False if the caller has forgotten struct_size. No struct at all is complete.
template <class T>
bool is_complete(const T* given) noexcept {
  return given == nullptr || given->struct_size >= kLeastSize<T>;
}

/// Copies `value` to the caller's complete struct, at most as much as the caller's struct_size.
template <class T>
void copy_out(T value, T* out) noexcept {
  value.struct_size = std::min(out->struct_size, sizeof value);
  std::memcpy(out, &value, value.struct_size);
}

/// Reads the caller's complete struct; members that it is too short for are zero.
template <class T>
T copy_in(const T* given) noexcept {
  T value{};
  if (given != nullptr) std::memcpy(&value, given, std::min(given->struct_size, sizeof value));
  return value;
}

}  // namespace perfmap::capi
