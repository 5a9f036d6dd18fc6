// JavaScriptCore and SpiderMonkey: "KIND: " and the function. Sources: WebKit's assembler/PerfLog
// and its callers; Gecko's js/src/jit/PerfSpewer.cpp; samply's tables of both.

#include <array>

#include "answers/names/decoders.hpp"

namespace perfmap::names {
namespace {

struct Kind {
  std::string_view prefix;
  std::string_view tier;
};

constexpr std::array kJscKinds = {
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

constexpr std::array kSpiderMonkeyKinds = {
    Kind{"Ion: ", "ion"},         Kind{"Baseline: ", "baseline"},
    Kind{"IonIC: ", "stub"},      Kind{"BaselineInterpreter: ", "interpreter"},
    Kind{"BaselineIC: ", "stub"}, Kind{"BlinterpOp: ", "interpreter"},
    Kind{"VMWrapper: ", "stub"},  Kind{"WasmTrampoline: ", "trampoline"},
};

template <std::size_t N>
const Kind* kind_of(std::string_view raw, const std::array<Kind, N>& kinds) {
  for (const Kind& kind : kinds) {
    if (raw.starts_with(kind.prefix) && raw.size() > kind.prefix.size()) return &kind;
  }
  return nullptr;
}

void set_place(const Place& place, DecodedName& name) {
  name.file = place.path;
  name.line = place.line;
  name.column = place.column;
}

}  // namespace

/// "JSC-FTL: diffProps[Call (StrictMode)] /srv/index.js:123:12"; built-in functions have no file.
std::optional<DecodedName> decode_jsc(std::string_view raw) {
  const Kind* const kind = kind_of(raw, kJscKinds);
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

/// "Ion: f (file:line:col)", "IonIC: SetElem : f (file:line:col)".
std::optional<DecodedName> decode_spidermonkey(std::string_view raw) {
  if (raw == "BaselineInterpreter") {
    return DecodedName{.runtime = Runtime::spidermonkey, .tier = "interpreter", .function = raw};
  }
  const Kind* const kind = kind_of(raw, kSpiderMonkeyKinds);
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

}  // namespace perfmap::names
