#pragma once

#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// Appends `bytes` as a person may see them on a terminal: control bytes, what is not valid UTF-8,
/// and characters that cannot be seen, that turn the text around or that drive a terminal become
/// \xNN, byte by byte. O(bytes).
PERFMAP_API void append_visible(std::string& out, std::string_view bytes);

}  // namespace perfmap
