// SPDX-License-Identifier: MIT
// HHVM: PHP::[file::]function.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with("PHP::") || raw.size() == 5) return std::nullopt;
  DecodedName name{.runtime = Runtime::hhvm, .function = raw.substr(5)};
  const std::size_t colons = name.function.find("::");
  if (name.function.starts_with('/') && colons != std::string_view::npos &&
      colons + 2 < name.function.size()) {
    name.file = name.function.substr(0, colons);
    name.function = name.function.substr(colons + 2);
  }
  return name;
}

}  // namespace

constinit const RuntimeInfo kHhvm = {
    .runtime = Runtime::hhvm,
    .id = "hhvm",
    .title = "HHVM",
    .names = {.decode = decode},
    .guide = {.title = "HHVM",
              .start = "hhvm -vEval.PerfPidMap=true",
              .writes = "perf map",
              .names = "PHP and Hack functions"},
};

}  // namespace perfmap::runtimes
