#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace perfmap::app {

/// --no-demangle, which sets `demangle` to false.
void add_no_demangle(CLI::App& command, bool& demangle);

/// The name of a map or dump for people: demangled if it is a mangled symbol and `demangle` is set.
/// JSON has names as files do.
std::string readable_name(std::string_view name, bool demangle);

}  // namespace perfmap::app
