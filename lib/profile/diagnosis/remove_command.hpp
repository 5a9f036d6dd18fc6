#pragma once

#include <string>
#include <sys/types.h>

namespace perfmap {

/// "rm PATH", or "rm -r PATH" for a directory, with sudo where `reader` may not remove it.
std::string remove_command(const std::string& path, uid_t reader);

}  // namespace perfmap
