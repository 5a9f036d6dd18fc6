// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

inline void* word(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

/// An evaluator that returns the sum of its arguments.
inline void* sum(void* first, void* second, void* third) {
  return word(reinterpret_cast<std::uintptr_t>(first) + reinterpret_cast<std::uintptr_t>(second) +
              reinterpret_cast<std::uintptr_t>(third));
}

/// An evaluator that returns its return address.
[[gnu::noinline]] inline void* return_address(void*, void*, void*) {
  return __builtin_return_address(0);
}
inline std::uintptr_t caller_of(Trampoline& trampoline) {
  return reinterpret_cast<std::uintptr_t>(
      trampoline.call(nullptr, nullptr, nullptr, return_address));
}

inline std::string own_map(const Scratch& scratch, pid_t pid) {
  return scratch / ("perf-" + std::to_string(pid) + ".map");
}

/// Whether `body` returns true in a separate process whose map is in `scratch`.
template <class Body>
bool in_child(const Scratch& scratch, Body body, ForkPolicy fork = ForkPolicy::fresh) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool ready = ProcessMap::configure({.directory = scratch.path(), .fork = fork}) == 0;
    ::_exit(ready && body() ? 0 : 1);
  }
  return wait_for(child) == 0;
}

}  // namespace perfmap::test
