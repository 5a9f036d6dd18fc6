// SPDX-License-Identifier: MIT
// JavaScriptCore, as in Bun: "KIND: " and the function. Sources: WebKit's assembler/PerfLog and its
// callers; samply's table.

#include <algorithm>
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

/// Without "#B6K2n1", a hash of the code. An anonymous function has only that.
std::string_view without_hash(std::string_view function) {
  constexpr std::size_t kSize = 7;
  if (function.size() < kSize || function[function.size() - kSize] != '#') return function;
  const std::string_view hash = function.substr(function.size() - kSize + 1);
  const bool is_hash = std::ranges::all_of(hash, [](char c) { return is_word(c) && c != '_'; });
  return is_hash ? function.substr(0, function.size() - kSize) : function;
}

/// "JSC-FTL: diffProps[Call (StrictMode)] /srv/index.js:123:12"; built-in functions have no file.
std::optional<DecodedName> decode(std::string_view raw) {
  const Kind* const kind = kind_of(raw, kKinds);
  if (kind == nullptr) return std::nullopt;
  DecodedName name{
      .runtime = Runtime::jsc, .tier = kind->tier, .function = raw.substr(kind->prefix.size())};
  std::size_t call = name.function.find("[Call");
  if (call == std::string_view::npos) call = name.function.find("[Construct");
  const std::size_t close = name.function.find("] ", call);
  if (call == std::string_view::npos || call == 0 || close == std::string_view::npos) {
    name.function = without_hash(name.function);
    return name;
  }
  if (const auto place = split_place(name.function.substr(close + 2))) {
    set_place(*place, name);
    name.function = name.function.substr(0, call);
  }
  return name;
}

/// Without BUN_ before their names, Bun ignores JavaScriptCore's variables.
constexpr std::string_view kUse = "BUN_JSC_useJITDump";
constexpr std::string_view kDirectory = "BUN_JSC_jitDumpDirectory";
constexpr std::string_view kVariables[] = {kUse, kDirectory};
/// Bun aborts if it cannot create a file in that directory, or cannot map it as code, so it is one
/// that all can write to.
constexpr std::string_view kNamingVariables[] = {"BUN_JSC_useJITDump=1",
                                                 "BUN_JSC_jitDumpDirectory=/tmp"};

StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  const std::string_view use = start.variable(kUse).value_or("");
  if (use != "1" && use != "true" && use != "yes") return asked;
  asked.dump_by = std::string(kUse) + "=" + std::string(use);
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  return with_variables(process.start, kNamingVariables);
}

/// Without a directory, Bun creates /tmp/jit-TID-PID-RANDOM.
constexpr StartVariable kStartVariables[] = {{kUse, "1", '\0'}};

}  // namespace

constinit const RuntimeInfo kJsc = {
    .runtime = Runtime::jsc,
    .id = "jsc",
    .process = "bun",
    .title = "Bun",
    .names = {.decode = decode, .without_tier = from_function},
    // The npm package calls its program bun.exe on Linux as well.
    .signs = {.programs = {"bun", "bun.exe"}},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .doctor = {.no_map = "Bun is not configured to write a jitdump, so its JavaScript functions "
                         "have no names"},
    .started = {.variables = kStartVariables, .needs_code_in_tmp = true},
    .guide = {.title = "Bun (JavaScriptCore)",
              .writes = "jitdump",
              .names = "JavaScript functions, with the tier",
              .since = "Bun 1.4",
              .tested = "1.4",
              .recorded = "100 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
