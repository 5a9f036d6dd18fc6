#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// What .gnu_debugdata holds: an ELF file with the symbols that a distribution has stripped.
/// Nothing where it is no xz stream, or unpacks to more than 128 MiB.
std::optional<std::string> unpack_symbols(std::string_view xz);

}  // namespace perfmap
