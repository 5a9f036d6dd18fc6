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
#include <string_view>
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

/// What exactly failed, for callers that distinguish it. The numbers are those of perfmap_reason in
/// perfmap_writer.h, which has the meanings.
enum class Reason : std::int32_t {
#define PERFMAP_REASON(name, ...) name,
#include "perfmap/reasons.def"
};
/// "foreign-owner".
PERFMAP_API std::string_view to_string(Reason reason) noexcept;

/// The failure of an operation.
struct Error {
  Errc code = Errc::internal;
  Reason reason = Reason::other;
  std::string doing = {};     ///< such as "cannot open"; may be empty
  std::string path = {};      ///< the file that it is about, or "process 42"; empty if none
  std::string detail = {};    ///< completes the text of the reason, or replaces it
  std::string sentence = {};  ///< instead of one that is made of the other members
  int sys_errno = 0;          ///< 0 if no system call failed
  Location where = {};

  /// With the code of the reason.
  PERFMAP_API static Error of(Reason reason, std::string path, std::string detail = {});
  /// The same, with "cannot VERB PATH: " before the reason.
  PERFMAP_API static Error cannot(std::string_view verb, std::string path, Reason reason,
                                  std::string detail = {});

  /// With a sentence of its own.
  static Error told(Errc code, std::string sentence) {
    Error error;
    error.code = code;
    error.sentence = std::move(sentence);
    return error;
  }
  static Error io(std::string what) { return told(Errc::io, std::move(what)); }
  static Error not_found(std::string what) { return told(Errc::not_found, std::move(what)); }
  static Error bad_format(std::string what) { return told(Errc::bad_format, std::move(what)); }
  static Error unsupported(std::string what) { return told(Errc::unsupported, std::move(what)); }
  static Error invalid(std::string what) { return told(Errc::invalid_argument, std::move(what)); }
  static Error refused(std::string what) { return told(Errc::refused, std::move(what)); }
  static Error too_large(std::string what) { return told(Errc::too_large, std::move(what)); }

  Error with_errno(int number) && {
    sys_errno = number;
    return std::move(*this);
  }
  Error at(Location place) && {
    where = place;
    return std::move(*this);
  }
  /// Puts a text before the sentence, or after it.
  Error& prefix(const std::string& text) {
    sentence = text + message();
    return *this;
  }
  Error& append(const std::string& text) {
    sentence = message() + text;
    return *this;
  }

  /// One line without a final period, such as "cannot open /tmp/perf-42.map: No such file or
  /// directory". Made when it is asked for.
  PERFMAP_API std::string message() const;
  /// Its end, such as "No such file or directory".
  PERFMAP_API std::string why() const;
};

/// A value, or the reason why there is none.
template <class T>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

/// The error of a result that has failed.
template <class T>
Failure failure(Result<T>& result) {
  return Failure(std::move(result.error()));
}
template <class T>
Failure failure(Result<T>&& result) {
  return failure(result);
}
template <class T>
Failure failure(const Result<T>& result) {
  return Failure(result.error());
}

/// An Error from errno: "`doing` `path`: <what errno means>". ENOENT becomes Errc::not_found.
PERFMAP_API Error system_error(std::string doing, std::string path, int sys_errno);

}  // namespace perfmap
