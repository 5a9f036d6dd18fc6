// V8: KIND:MARK NAME FILE:LINE:COL, where KIND says what the code is and MARK how far it is
// optimised. Source: V8's src/logging/log.cc, code-events.h and code-kind.cc, and what Node.js 20
// writes.

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

/// Takes the mark off: one of ~ ^ + *; before the last two an "o" for on-stack replacement, behind
/// them a ' for context specialised code. No mark at all where V8 may not optimise the function.
std::string_view take_mark(std::string_view& rest) {
  const std::size_t replaced = rest.starts_with("o+") || rest.starts_with("o*") ? 1 : 0;
  const std::string_view tier = tier_of_mark(rest[replaced]);
  if (tier.empty()) return tier;
  rest.remove_prefix(replaced + 1);
  if ((tier == "maglev" || tier == "turbofan") && rest.starts_with('\'')) rest.remove_prefix(1);
  return tier;
}

/// WebAssembly: "wasm-function[0]-0-turbofan", "add-12-liftoff": name, index and compiler.
bool decode_wasm(std::string_view rest, DecodedName& name) {
  struct Compiler {
    std::string_view suffix;
    std::string_view tier;
  };
  constexpr std::array kCompilers = {Compiler{"-turbofan", "turbofan"},
                                     Compiler{"-liftoff", "baseline"}};
  for (const Compiler& compiler : kCompilers) {
    if (!rest.ends_with(compiler.suffix)) continue;
    const std::string_view indexed = rest.substr(0, rest.size() - compiler.suffix.size());
    const std::size_t dash = indexed.rfind('-');
    if (dash == std::string_view::npos || dash == 0 || !parse_decimal(indexed.substr(dash + 1))) {
      continue;
    }
    name.function = indexed.substr(0, dash);
    name.tier = compiler.tier;
    return true;
  }
  return false;
}

/// Where a file plainly begins in " FILE": an absolute path, a URL or a module of Node.js.
std::size_t plain_file_start(std::string_view text) {
  std::size_t path = text.rfind(" /");
  std::size_t node = text.rfind(" node:");
  std::size_t url = text.rfind("://");
  if (url != std::string_view::npos) url = text.substr(0, url).rfind(' ');
  const auto last = [](std::size_t a, std::size_t b) { return a + 1 > b + 1 ? a : b; };
  return last(path, last(node, url));
}

/// Where the file begins: V8 writes the function, a blank, and the file. Both may hold blanks
/// ("get size", "GET /users", "/srv/my app/a.js"), so that the last blank before what is plainly a
/// file counts; where nothing is, the last blank.
std::size_t file_start(std::string_view text) {
  const std::size_t plain = plain_file_start(text);
  const std::size_t blank = plain != std::string_view::npos ? plain : text.rfind(' ');
  return blank == std::string_view::npos ? blank : blank + 1;
}

void decode_function(std::string_view rest, DecodedName& name) {
  name.tier = take_mark(rest);
  if (decode_wasm(rest, name)) return;
  const auto place = split_place(rest);
  const std::size_t file = place ? file_start(place->path) : std::string_view::npos;
  name.function = rest;
  if (file == std::string_view::npos) return;
  name.function = rest.substr(0, file - 1);
  name.file = place->path.substr(file);
  name.line = place->line;
  name.column = place->column;
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
    decode_function(raw.substr(kind.size()), name);
    return name;
  }
  return std::nullopt;
}

}  // namespace perfmap::names
