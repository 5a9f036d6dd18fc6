// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/jit_format.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/runtimes.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

/// What a function is called in every recording of a program.
struct FunctionIdentity {
  std::string name;
  std::string file;  ///< name of its ELF file or script; empty for other JIT code
  /// From 1 on, of several functions with that name in the file; 0: the only one, or all of them.
  std::uint32_t ordinal = 0;

  friend auto operator<=>(const FunctionIdentity&, const FunctionIdentity&) = default;
};

/// A script's function has its directory, line and column in its name, which other checkouts and
/// changes of other functions change. See stable_name() for other names. `shown` is its name
/// without the tier, `system_name` that of the runtime.
inline FunctionIdentity identity_of(FrameKind kind, std::string_view shown,
                                    std::string_view system_name, std::string_view module) {
  if (kind != FrameKind::jit) return {std::string(shown), std::string(base_name(module)), 0};
  const std::string_view raw = system_name.empty() ? shown : system_name;
  const std::string stable = stable_name(raw);
  const DecodedName decoded = decode_name(stable);
  if (decoded.file.empty()) return {stable_name(shown), "", 0};
  FunctionIdentity identity{std::string(decoded.function), std::string(base_name(decoded.file))};
  // If the name was a counter, the line tells traces apart.
  if (stable != raw && decoded.line != 0 && decode_name(raw).function != decoded.function) {
    identity.name += ":" + std::to_string(decoded.line);
  }
  return identity;
}

}  // namespace perfmap
