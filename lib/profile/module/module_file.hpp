// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "perfmap/input.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Opens a file of a module: only regular files, of any owner, and below a root if one is given, so
/// that no link leads out of it. If that root is a process's, /proc/PID/root, with the rights of
/// the process. Other files are not opened at all: opening a device may have effects, and a name
/// from a file or a process may be that of a device.
Result<Input> open_module_file(const std::string& root, const std::string& path);

/// The key of that file, without opening it; nothing if it does not exist.
std::optional<FileKey> key_of_module_file(const std::string& root, const std::string& path);

}  // namespace perfmap
