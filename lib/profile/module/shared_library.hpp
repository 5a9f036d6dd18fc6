// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <type_traits>

#include "perfmap/types.hpp"

namespace perfmap {

/// A shared library that is opened only if it is asked for, and stays loaded. The static program
/// has no loader: for it, shared_library.cpp is compiled a second time, and open() says so.
class SharedLibrary {
 public:
  /// `package`: what has it in Debian, for the message.
  static Result<SharedLibrary> open(const std::string& file, const std::string& package);

  /// False, and a null pointer, if the library has no such function.
  template <typename Function>
  bool find(const char* name, Function& function) const noexcept {
    function = reinterpret_cast<std::remove_reference_t<Function>>(address_of(name));
    return function != nullptr;
  }

 private:
  explicit SharedLibrary(void* handle) noexcept : handle_(handle) {}
  void* address_of(const char* name) const noexcept;

  [[maybe_unused]] void* handle_;  // not in the static program
};

}  // namespace perfmap
