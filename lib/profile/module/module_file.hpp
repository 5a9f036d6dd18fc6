#pragma once

#include <optional>
#include <string>

#include "perfmap/input.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Opens a file of a module: regular ones only, of whatever owner, and below a root where there is
/// one, so that no link leads out of it. What is no regular file is not opened at all, as opening a
/// device can do things, and a name that was found in a file or in a process may be one.
Result<Input> open_module_file(const std::string& root, const std::string& path);

/// Which file that would be, without opening it; nothing where it is none.
std::optional<FileKey> key_of_module_file(const std::string& root, const std::string& path);

}  // namespace perfmap
