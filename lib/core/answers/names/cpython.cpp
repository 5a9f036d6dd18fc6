// CPython: py::QUALNAME:FILE (Python/perf_trampoline.c).

#include "answers/names/decoders.hpp"

namespace perfmap::names {

std::optional<DecodedName> decode_cpython(std::string_view raw) {
  if (!raw.starts_with("py::")) return std::nullopt;
  const std::string_view rest = raw.substr(4);
  DecodedName name{.runtime = Runtime::cpython, .tier = "trampoline", .function = rest};
  // A qualified name has no colon but a file may: the first one separates.
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos && colon != 0) {
    name.function = rest.substr(0, colon);
    name.file = rest.substr(colon + 1);
  }
  if (name.function.empty()) name.function = raw;
  return name;
}

}  // namespace perfmap::names
