#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/export.hpp"

namespace perfmap {

/// What makes code while it runs: whoever wrote a name, or what a process is. runtimes.hpp has what
/// is known about each.
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
  /// How far the code is optimised, or which code of the runtime's own it is, in one word. Empty
  /// where the name does not say. Static storage.
  ///
  ///   v8            interpreted, baseline (Sparkplug, Liftoff), maglev, turbofan;
  ///                 builtin, bytecode (a handler), regexp, stub
  ///   spidermonkey  baseline, ion; interpreter, stub, trampoline
  ///   jsc           interpreted, baseline (and BBQ), dfg, ftl (and OMG); regexp, stub
  ///   dotnet        tier0 (quick or unoptimised), tier1 (optimised), instrumented, prejit; stub
  ///   cpython       trampoline: perf maps hold nothing else of it
  ///   php, luajit, pypy  trace; stub
  ///   wasm          wasm; trampoline
  ///   hotspot, erlang, mono, julia  interpreter, adapter, stub, trampoline: for their own code
  ///   alone
  std::string_view tier = {};
  std::string_view function = {};  ///< empty for an anonymous function of a script
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
/// "JS:*foo /a.js:1:13" becomes "foo /a.js:1:13", "JS:^ /a.js:1:13" "(anonymous) /a.js:1:13", and
/// "void [A] N.T::M()[Tier1]" "void [A] N.T::M()". Other names stay as they are, those of a
/// runtime's own code among them: "Builtin:Call" is not a script's function Call.
PERFMAP_API std::string without_tier(std::string_view raw);

}  // namespace perfmap
