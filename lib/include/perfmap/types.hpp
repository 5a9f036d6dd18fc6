// SPDX-License-Identifier: MIT
#pragma once

#if __cplusplus < 202002L
#error "perfmap's C++ headers need C++20: -std=c++20"
#elif !__has_include(<tl/expected.hpp>)
#error \
    "perfmap's C++ headers need tl::expected: apt-get install libexpected-dev, or github.com/TartanLlama/expected"
#endif

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "perfmap/address.hpp"

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

}  // namespace perfmap
