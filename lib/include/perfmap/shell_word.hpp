#pragma once

#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// A word as a shell (bash, zsh, ksh) reads it back to the same bytes; none of them is a control
/// byte, so that it can be shown.
PERFMAP_API std::string shell_word(std::string_view word);

}  // namespace perfmap
