// V8: KIND:MARK NAME FILE:LINE:COL, where KIND says what the code is and MARK how far it is
// optimised. Source: V8's src/logging/log.cc and code-events.h; samply's table of marks.

#include <array>

#include "answers/names/decoders.hpp"

namespace perfmap::names {
namespace {

struct Kind {
  std::string_view prefix;
  std::string_view tier;  // where the kind alone says it
};

/// Kinds of code that is no function of a script: the rest of the name is one name.
constexpr std::array kPlainKinds = {
    Kind{"Builtin:", "builtin"},   Kind{"BytecodeHandler:", "bytecode"},
    Kind{"RegExp:", "regexp"},     Kind{"Stub:", "stub"},
    Kind{"Handler:", "stub"},      Kind{"LoadIC:", "stub"},
    Kind{"StoreIC:", "stub"},      Kind{"KeyedLoadIC:", "stub"},
    Kind{"KeyedStoreIC:", "stub"}, Kind{"CallIC:", "stub"},
};

constexpr std::array<std::string_view, 7> kFunctionKinds = {
    "JS:", "Eval:", "Script:", "LazyCompile:", "Function:", "NativeFunction:", "WasmFunction:"};

std::string_view tier_of_mark(char mark) noexcept {
  switch (mark) {
    case '~': return "interpreted";
    case '^': return "baseline";
    case '+': return "maglev";
    case '*': return "turbofan";
    default: return {};
  }
}

/// "wasm-function[0]-0-turbofan"
bool decode_wasm(std::string_view rest, DecodedName& name) {
  if (!rest.starts_with("wasm-function[")) return false;
  name.function = rest.substr(0, rest.find(']') + 1);
  if (name.function.empty()) name.function = rest;
  name.tier = rest.ends_with("-turbofan")  ? "turbofan"
              : rest.ends_with("-liftoff") ? "baseline"
                                           : "wasm";
  return true;
}

/// Where the file begins: V8 writes the function, a blank, and the file, which may hold blanks; so
/// may a getter's name ("get size"). Files are absolute paths, URLs or node: modules; where none of
/// those is there, the last blank it is.
std::size_t file_start(std::string_view text) {
  std::size_t best = std::string_view::npos;
  for (std::size_t blank = text.find(' '); blank != std::string_view::npos;
       blank = text.find(' ', blank + 1)) {
    const std::string_view after = text.substr(blank + 1);
    const std::size_t scheme = after.find(':');
    const bool path = after.starts_with('/');
    const bool url = scheme != std::string_view::npos && scheme > 1 &&
                     after.substr(0, scheme).find_first_of(" /()[]") == std::string_view::npos;
    if (path || url) return blank + 1;
    best = blank + 1;
  }
  return best;
}

}  // namespace

std::optional<DecodedName> decode_v8(std::string_view raw) {
  DecodedName name{.runtime = Runtime::v8};
  for (const Kind& kind : kPlainKinds) {
    if (!raw.starts_with(kind.prefix) || raw.size() == kind.prefix.size()) continue;
    name.tier = kind.tier;
    name.function = raw.substr(kind.prefix.size());
    return name;
  }
  for (const std::string_view kind : kFunctionKinds) {
    if (!raw.starts_with(kind) || raw.size() == kind.size()) continue;
    std::string_view rest = raw.substr(kind.size());
    if (decode_wasm(rest, name)) return name;
    name.tier = tier_of_mark(rest[0]);
    if (!name.tier.empty()) rest.remove_prefix(1);
    // After the mark: ' for context specialised code, o for on-stack replacement.
    if (name.tier == "turbofan" && rest.starts_with('\'')) rest.remove_prefix(1);
    const auto place = split_place(rest);
    const std::size_t file = place ? file_start(place->path) : std::string_view::npos;
    name.function = rest;
    if (file != std::string_view::npos) {
      name.function = rest.substr(0, file - 1);
      name.file = place->path.substr(file);
      name.line = place->line;
      name.column = place->column;
    }
    if (name.function.empty()) name.function = raw.substr(0, kind.size() - 1);  // anonymous
    return name;
  }
  return std::nullopt;
}

}  // namespace perfmap::names
