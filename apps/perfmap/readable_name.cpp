#include "readable_name.hpp"

#include <CLI/CLI.hpp>
#include <perfmap/demangle.hpp>

namespace perfmap::app {

void add_no_demangle(CLI::App& command, bool& demangle) {
  command.add_flag("!--no-demangle", demangle, "Print mangled names as files have them");
}

std::string readable_name(std::string_view name, bool demangle) {
  if (!demangle) return std::string(name);
  return demangle_code(name).value_or(std::string(name));
}

}  // namespace perfmap::app
