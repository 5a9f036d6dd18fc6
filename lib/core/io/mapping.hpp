// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

#include "writer/truncation_guard.hpp"

namespace perfmap {

/// A file mapped for reading, registered with TruncationGuard during its lifetime. Movable; owns
/// the pages.
class Mapping {
 public:
  Mapping() = default;
  /// Maps `size` bytes of `fd` from its start; size is not 0. On failure mapped() is false and
  /// errno is set.
  Mapping(int fd, std::size_t size) noexcept;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  bool mapped() const noexcept { return begin_ != nullptr; }
  std::string_view text() const noexcept { return {begin_, size_}; }
  /// Whether the guard replaced pages that the file no longer has with zeros.
  bool was_truncated() const noexcept;

 private:
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
  GuardedRange range_;
};

}  // namespace perfmap
