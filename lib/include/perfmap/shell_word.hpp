#pragma once

#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// A word as sh(1) reads it back to the same bytes; none of them is a control byte, so that it can
/// be shown. A word that ends in a newline is one for bash, zsh and ksh alone.
PERFMAP_API std::string shell_word(std::string_view word);

}  // namespace perfmap
