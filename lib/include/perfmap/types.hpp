#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

/// Marks the symbols that libperfmap.so exports. All others are hidden.
#define PERFMAP_API __attribute__((visibility("default")))

namespace perfmap {

/// Why an operation failed. The numbers are those of perfmap_status in perfmap.h.
enum class Errc : std::int32_t {
  io = 1,                ///< a system call failed; see sys_errno
  not_found = 2,         ///< no such file, or no such process
  bad_format = 3,        ///< the input does not have the expected format
  unsupported = 4,       ///< the operation does not support this kind of input
  invalid_argument = 5,  ///< an argument is invalid
  refused = 6,           ///< the file is not trusted: a link, a foreign owner, not a regular file
  too_large = 7,         ///< the input is larger than the reader's limit
  no_memory = 8,         ///< C interface only: C++ throws std::bad_alloc
  internal = 9,          ///< a bug in perfmap
};

/// A place in an input. `line` and `column` count from 1, columns in bytes; 0 means "no line".
struct Location {
  std::uint64_t offset = 0;  ///< bytes from the start of the input
  std::uint64_t line = 0;
  std::uint64_t column = 0;

  friend bool operator==(const Location&, const Location&) = default;
};

/// The failure of an operation. `message` is one line without a final period, such as "cannot open
/// /tmp/perf-42.map: No such file or directory".
struct Error {
  Errc code = Errc::internal;
  std::string message;
  int sys_errno = 0;  ///< 0 if no system call failed
  Location where = {};
};

/// A value, or the reason why there is none.
template <class T>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

/// An Error from errno: "`what`: <what errno means>". ENOENT becomes Errc::not_found.
PERFMAP_API Error system_error(std::string what, int sys_errno);

/// An absolute virtual address in the profiled process; never a file offset.
using Address = std::uint64_t;

/// The half-open range [begin, begin + size); size is in bytes.
/// Invariant: begin + size does not exceed 2^64. Ranges of code come from within_space(): if they
/// include the last byte of the address space, their end() is 0, so compare last() instead. Ranges
/// of mapped memory come from clamped(): their end() is never 0.
struct AddressRange {
  Address begin = 0;
  std::uint64_t size = 0;

  /// Cuts the range so that it ends at 2^64 at the latest.
  static constexpr AddressRange within_space(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t after = UINT64_MAX - begin;  // addresses after `begin`
    return {begin, size == 0 || size - 1 <= after ? size : after + 1};
  }
  /// Cuts the range so that it ends at 2^64 - 1 at the latest.
  static constexpr AddressRange clamped(Address begin, std::uint64_t size) noexcept {
    const std::uint64_t room = UINT64_MAX - begin;
    return {begin, size < room ? size : room};
  }

  constexpr Address end() const noexcept { return begin + size; }
  /// The last address in the range. An empty range stands for its first byte.
  constexpr Address last() const noexcept { return begin + (size == 0 ? 0 : size - 1); }

  /// One comparison, no overflow: an address below `begin` wraps round to a huge distance.
  constexpr bool contains(Address address) const noexcept { return address - begin < size; }

  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace perfmap
