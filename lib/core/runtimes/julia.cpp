// SPDX-License-Identifier: MIT
// Julia: julia_f_12; japi1_ and jlsys_ for other calling conventions, jfptr_ for wrappers,
// jlplt_ and jlcapi_ for calls from and to C.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  for (const std::string_view prefix :
       {"julia_", "japi1_", "japi3_", "jfptr_", "jlsys_", "jlplt_", "jlcapi_"}) {
    const std::size_t last = raw.rfind('_');
    if (!raw.starts_with(prefix) || last < prefix.size() + 1 || !all_digits(raw.substr(last + 1))) {
      continue;
    }
    return DecodedName{.runtime = Runtime::julia,
                       .tier = prefix == "jfptr_" ? "adapter" : "",
                       .function = raw.substr(prefix.size(), last - prefix.size())};
  }
  return std::nullopt;
}

/// The counter of its compilations.
constexpr RunNumber kRunNumbers[] = {{.mark = "_", .is_last = true}};

}  // namespace

constinit const RuntimeInfo kJulia = {
    .runtime = Runtime::julia,
    .id = "julia",
    .title = "Julia",
    .names = {.decode = decode, .run_numbers = kRunNumbers},
    .guide = {.title = "Julia",
              .start = "ENABLE_JITPROFILING=1",
              .writes = "jitdump",
              .names = "functions, with lines",
              .since = "1.9"},
};

}  // namespace perfmap::runtimes
