// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/runtimes.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

/// What a function is called in every recording of a program.
struct FunctionIdentity {
  std::string_view name;
  std::string_view file;  ///< name of its ELF file or script; empty for other JIT code
  /// From 1 on, of several functions with that name in the file; 0: the only one, or all of them.
  std::uint32_t ordinal = 0;

  friend auto operator<=>(const FunctionIdentity&, const FunctionIdentity&) = default;
};

/// A script's function has its directory, line and column in its name, which other checkouts and
/// changes of other functions change. `shown` is its name without the tier, `system_name` that of
/// the runtime.
inline FunctionIdentity identity_of(FrameKind kind, std::string_view shown,
                                    std::string_view system_name, std::string_view module) {
  if (kind != FrameKind::jit) return {shown, file_name_of(module), 0};
  const DecodedName decoded = decode_name(system_name.empty() ? shown : system_name);
  if (decoded.file.empty()) return {shown, "", 0};
  return {decoded.function, file_name_of(decoded.file), 0};
}

}  // namespace perfmap
