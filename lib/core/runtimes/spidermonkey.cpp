// SPDX-License-Identifier: MIT
// SpiderMonkey: "KIND: " and the function. Sources: Gecko's js/src/jit/PerfSpewer.cpp; samply's
// table.

#include <array>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

constexpr std::array kKinds = {
    Kind{"Ion: ", "ion"},         Kind{"Baseline: ", "baseline"},
    Kind{"IonIC: ", "stub"},      Kind{"BaselineInterpreter: ", "interpreter"},
    Kind{"BaselineIC: ", "stub"}, Kind{"BlinterpOp: ", "interpreter"},
    Kind{"VMWrapper: ", "stub"},  Kind{"WasmTrampoline: ", "trampoline"},
};

/// "Ion: f (file:line:col)", "IonIC: SetElem : f (file:line:col)".
std::optional<DecodedName> decode(std::string_view raw) {
  if (raw == "BaselineInterpreter") {
    return DecodedName{.runtime = Runtime::spidermonkey, .tier = "interpreter", .function = raw};
  }
  const Kind* const kind = kind_of(raw, kKinds);
  if (kind == nullptr) return std::nullopt;
  DecodedName name{.runtime = Runtime::spidermonkey,
                   .tier = kind->tier,
                   .function = raw.substr(kind->prefix.size())};
  const std::size_t open = name.function.rfind(" (");
  if (open == std::string_view::npos || open == 0 || !name.function.ends_with(')')) return name;
  if (const auto place =
          split_place(name.function.substr(open + 2, name.function.size() - open - 3))) {
    set_place(*place, name);
    name.function = name.function.substr(0, open);
  }
  return name;
}

}  // namespace

constinit const RuntimeInfo kSpidermonkey = {
    .runtime = Runtime::spidermonkey,
    .id = "spidermonkey",
    .title = "SpiderMonkey",
    .names = {.decode = decode, .without_tier = from_function},
    .guide = {.title = "Firefox (SpiderMonkey)",
              .start = "IONPERF=func PERF_SPEW_DIR=/tmp MOZ_DISABLE_CONTENT_SANDBOX=1",
              .writes = "jitdump",
              .names = "JavaScript functions, with the tier"},
};

}  // namespace perfmap::runtimes
