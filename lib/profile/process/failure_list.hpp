// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "perfmap/types.hpp"

namespace perfmap {

/// Errors in the order in which they came, each message once.
class FailureList {
 public:
  /// O(1) on average.
  void add(Error error) {
    if (known_.insert(error.message()).second) errors_.push_back(std::move(error));
  }
  /// The same for errors of files that should be ELF files: most memory is none.
  void add_unexpected(Error error) {
    if (error.code != Errc::bad_format && error.code != Errc::unsupported) add(std::move(error));
  }
  std::span<const Error> errors() const noexcept { return errors_; }

 private:
  std::vector<Error> errors_;
  std::unordered_set<std::string> known_;
};

}  // namespace perfmap
