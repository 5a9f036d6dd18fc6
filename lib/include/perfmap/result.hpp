#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "perfmap/export.hpp"

namespace perfmap {

/// Why an operation could not be done. The numbers are those of perfmap_status in perfmap.h.
enum class Errc : std::int32_t {
  io = 1,                ///< a system call failed; see sys_errno
  not_found = 2,         ///< no such file, or no such process
  bad_format = 3,        ///< the input is not what it has to be
  unsupported = 4,       ///< a kind of input that this operation does not take
  invalid_argument = 5,  ///< the caller asked for something that has no meaning
  refused = 6,           ///< a file that must not be trusted: a link, a foreign owner, no file
  too_large = 7,         ///< more input than the reader is willing to hold
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

/// An operation that could not be done. `message` is one line without a final stop, such as
/// "cannot open /tmp/perf-42.map: No such file or directory".
struct Error {
  Errc code = Errc::internal;
  std::string message;
  int sys_errno = 0;  ///< 0 when no system call was to blame
  Location where = {};
};

/// A value, or why there is none.
template <class T>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

/// An Error from errno: "`what`: <what errno means>". ENOENT becomes Errc::not_found.
PERFMAP_API Error system_error(std::string what, int sys_errno);

}  // namespace perfmap
