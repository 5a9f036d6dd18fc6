#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/export.hpp"

namespace perfmap {

/// Who wrote a name.
enum class Runtime : std::uint8_t {
  unknown,
  v8,       ///< Node.js, Chromium, Deno
  hotspot,  ///< OpenJDK, and agents such as perf-map-agent
  cpython,
  dotnet,
  erlang,
  mono,
  php,
  ruby,
  luajit,
  hhvm,
  qemu,
  wasm,  ///< wasmtime, wasmer
  julia,
  jsc,  ///< JavaScriptCore
  spidermonkey,
  pypy,
};
/// "v8", "hotspot", …; "" for unknown. NUL-terminated.
PERFMAP_API std::string_view to_string(Runtime runtime) noexcept;

/// What a raw name of a perf map says. Everything is a view into the raw name, or empty.
///
/// A decoder claims no more than the text shows: where a form is not known, the runtime is unknown
/// and the function is the whole name.
struct DecodedName {
  Runtime runtime = Runtime::unknown;
  /// How far the code is optimised, in one word: "builtin", "bytecode", "interpreted", "baseline",
  /// "maglev", "turbofan", "regexp", "wasm", "stub", "trampoline", "adapter", "interpreter",
  /// "tier0", "tier1", "instrumented", "prejit", "trace", "ion", "dfg", "ftl". Empty where the name
  /// does not say. Static storage.
  std::string_view tier = {};
  std::string_view function = {};  ///< never empty unless the raw name is
  std::string_view file = {};
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  /// The functions inlined into each other, outermost first, where the name is such a chain; its
  /// last is `function`. Empty otherwise.
  std::vector<std::string_view> inline_chain = {};
};

/// O(name). Allocates only for chains.
PERFMAP_API DecodedName decode_name(std::string_view raw);

/// The name without what says how far it is optimised, so that all tiers of a function share it:
/// "JS:*foo /a.js:1:13" becomes "foo /a.js:1:13".
PERFMAP_API std::string without_tier(std::string_view raw);

}  // namespace perfmap
