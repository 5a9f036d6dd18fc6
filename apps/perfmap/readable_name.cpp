#include "readable_name.hpp"

#include <perfmap/demangle.hpp>

namespace perfmap::app {

std::string readable_name(std::string_view name, bool demangle) {
  if (!demangle) return std::string(name);
  return demangle_code(name).value_or(std::string(name));
}

}  // namespace perfmap::app
