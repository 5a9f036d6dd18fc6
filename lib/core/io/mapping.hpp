#pragma once

#include <cstddef>
#include <string_view>

namespace perfmap {

/// A file mapped for reading, known to TruncationGuard while it lives. Movable, owns the pages.
class Mapping {
 public:
  Mapping() = default;
  /// Maps `size` bytes of `fd` from its start; size is not 0. errno is set where it is not
  /// mapped().
  Mapping(int fd, std::size_t size) noexcept;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  bool mapped() const noexcept { return begin_ != nullptr; }
  std::string_view text() const noexcept { return {begin_, size_}; }
  /// Whether a guard had to put zeros in place of pages that the file no longer has.
  bool was_truncated() const noexcept;

 private:
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
  int slot_ = -1;  // in the table that the signal handler looks at
};

}  // namespace perfmap
