// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/runtimes.hpp"

namespace perfmap {

/// Whether the programs that a command starts can create files in their working directories. The
/// larger one of two is that of both.
enum class CanCreate : std::uint8_t { yes, unknown, no };

/// What a shell command says about that. It is unknown if it starts programs as another user or in
/// a directory whose name is computed, and if another script, or text that is not here, may do so.
/// Other programs are taken to start no further ones.
CanCreate can_create_by(std::string_view text, const std::vector<std::string>& environment);

/// The same for the beginning of a script.
CanCreate can_create_by_script(const std::string& path,
                               const std::vector<std::string>& environment);

/// The interpreter of a script, as its first line names it: of "#!/usr/bin/env -S node --x" it is
/// "node". Empty for other files.
std::string interpreter_of(const std::string& path);

/// The runtime whose programs, or whose launcher, has this name; null if there is none.
const RuntimeInfo* runtime_named(std::string_view path) noexcept;

}  // namespace perfmap
