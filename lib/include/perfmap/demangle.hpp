#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// A name in the language of its source: C++ (Itanium) and Rust. Nothing where it is not mangled,
/// or by rules that are not known here, or where the answer would be too long to be of use. What
/// follows an '@' (a version, "plt") stays as it is. Time and memory are bounded whatever the name
/// says. From any thread.
PERFMAP_API std::optional<std::string> demangle(std::string_view name);

}  // namespace perfmap
