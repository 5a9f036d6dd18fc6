// JavaScriptCore, as in Bun: "KIND: " and the function. Sources: WebKit's assembler/PerfLog and its
// callers; samply's table.

#include <array>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

constexpr std::array kKinds = {
    Kind{"JSC-Baseline: ", "baseline"},
    Kind{"JSC-DFG: ", "dfg"},
    Kind{"JSC-FTL: ", "ftl"},
    Kind{"JSC-WasmBBQ: ", "baseline"},
    Kind{"JSC-WasmOMG: ", "ftl"},
    Kind{"JSC-YarrJIT: ", "regexp"},
    Kind{"JSC-DFGOSREntry: ", "stub"},
    Kind{"JSC-DFGOSRExit: ", "stub"},
    Kind{"JSC-FTLOSRExit: ", "stub"},
    Kind{"JSC-InlineCache: ", "stub"},
    Kind{"JSC-JumpIsland: ", "stub"},
    Kind{"JSC-Thunk: ", "stub"},
    Kind{"JSC-LLIntThunk: ", "stub"},
    Kind{"JSC-DFGThunk: ", "stub"},
    Kind{"JSC-FTLThunk: ", "stub"},
    Kind{"JSC-WasmThunk: ", "stub"},
    Kind{"JSC-ExtraCTIThunk: ", "stub"},
    Kind{"JSC-CSSJIT: ", ""},
    Kind{"JSC-Uncategorized: ", ""},
    Kind{"Baseline JIT code for ", "baseline"},
    Kind{"DFG JIT code for ", "dfg"},
    Kind{"FTL B3 code for ", "ftl"},
    Kind{"DFG: ", "dfg"},
    Kind{"FTL: ", "ftl"},
    Kind{"LLInt: ", "interpreted"},
};

/// "JSC-FTL: diffProps[Call (StrictMode)] /srv/index.js:123:12"; built-in functions have no file.
std::optional<DecodedName> decode(std::string_view raw) {
  const Kind* const kind = kind_of(raw, kKinds);
  if (kind == nullptr) return std::nullopt;
  DecodedName name{
      .runtime = Runtime::jsc, .tier = kind->tier, .function = raw.substr(kind->prefix.size())};
  std::size_t call = name.function.find("[Call");
  if (call == std::string_view::npos) call = name.function.find("[Construct");
  const std::size_t close = name.function.find("] ", call);
  if (call == std::string_view::npos || call == 0 || close == std::string_view::npos) return name;
  if (const auto place = split_place(name.function.substr(close + 2))) {
    set_place(*place, name);
    name.function = name.function.substr(0, call);
  }
  return name;
}

}  // namespace

constinit const RuntimeInfo kJsc = {
    .runtime = Runtime::jsc,
    .id = "jsc",
    .title = "JavaScriptCore",
    .names = {.decode = decode, .without_tier = from_function},
    .guide = {.title = "Bun (JavaScriptCore)",
              .start = "BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=.",
              .writes = "jitdump",
              .names = "JavaScript functions, with the tier",
              .since = "Bun 1.4"},
};

}  // namespace perfmap::runtimes
