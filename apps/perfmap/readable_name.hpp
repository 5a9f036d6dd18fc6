#pragma once

#include <string>
#include <string_view>

namespace perfmap::app {

/// The name of a map or dump for people: demangled if it is a mangled symbol and `demangle` is set.
/// JSON has names as files do.
std::string readable_name(std::string_view name, bool demangle);

}  // namespace perfmap::app
