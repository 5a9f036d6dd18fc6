// SPDX-License-Identifier: MIT
// Names at the limits of what a decoder accepts.

#include <string>

#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"

namespace perfmap::name_limits_test {
namespace {

struct Case {
  std::string raw;
  Runtime runtime;
  std::string function;
  std::string file;
  std::uint64_t line;
};

void check(const Case& c) {
  CAPTURE(c.raw);
  const DecodedName name = decode_name(c.raw);
  CHECK(name.runtime == c.runtime);
  CHECK(name.function == c.function);
  CHECK(name.file == c.file);
  CHECK(name.line == c.line);
}

/// A name of no runtime stays unchanged.
Case foreign(std::string raw) { return {raw, Runtime::unknown, raw, "", 0}; }

}  // namespace

TEST_CASE("CPython: the file starts after the first colon, and no function name is empty",
          "[names]") {
  check(GENERATE(values<Case>({
      {"py::f:/a.py", Runtime::cpython, "f", "/a.py", 0},
      {"py::f:/a:b.py", Runtime::cpython, "f", "/a:b.py", 0},
      {"py::f:", Runtime::cpython, "f", "", 0},
      {"py::f", Runtime::cpython, "f", "", 0},
      {"py:::/a.py", Runtime::cpython, ":/a.py", "", 0},
      {"py::", Runtime::cpython, "py::", "", 0},
      foreign("py:"),
  })));
}

TEST_CASE("V8: a kind alone is not a name", "[names]") {
  check(GENERATE(values<Case>({
      foreign("Builtin:"),
      {"Builtin:A", Runtime::v8, "A", "", 0},
      foreign("JS:"),
      {"JS:f", Runtime::v8, "f", "", 0},
      {"JS:* /a.js:1:2", Runtime::v8, "", "/a.js", 1},
      {"JS:*f /a.js:1", Runtime::v8, "f", "/a.js", 1},
      {"JS:-0-liftoff", Runtime::v8, "-0-liftoff", "", 0},
      {"JS:f-0-liftoff", Runtime::v8, "f", "", 0},
      {"JS:f-x-liftoff", Runtime::v8, "f-x-liftoff", "", 0},
  })));
}

TEST_CASE("JavaScriptCore and SpiderMonkey: a kind alone is not a name", "[names]") {
  check(GENERATE(values<Case>({
      foreign("JSC-FTL: "),
      {"JSC-FTL: f", Runtime::jsc, "f", "", 0},
      {"JSC-FTL: [Call] /a.js:1:2", Runtime::jsc, "[Call] /a.js:1:2", "", 0},
      {"JSC-FTL: f[Call] /a.js:1:2", Runtime::jsc, "f", "/a.js", 1},
      {"JSC-FTL: f[Construct] /a.js:1:2", Runtime::jsc, "f", "/a.js", 1},
      foreign("Ion: "),
      {"Ion: f", Runtime::spidermonkey, "f", "", 0},
      {"Ion:  (a.js:1:2)", Runtime::spidermonkey, " (a.js:1:2)", "", 0},
      {"Ion: f (a.js:1:2", Runtime::spidermonkey, "f (a.js:1:2", "", 0},
      {"Ion: f (a.js:1:2)", Runtime::spidermonkey, "f", "a.js", 1},
  })));
}

TEST_CASE("Mono: methods have a single colon, so C++ names with a namespace do not match",
          "[names]") {
  check(GENERATE(values<Case>({
      foreign("std::f (int)"),
      foreign("a::b::f (int)"),
      {"H:f (int)", Runtime::mono, "H:f (int)", "", 0},
      {"N.H:f ()", Runtime::mono, "N.H:f ()", "", 0},
      foreign(":f (int)"),
      foreign("H: (int)"),
      foreign("H:f (int"),
      foreign("H:f(int)"),
      foreign("a H:f (int)"),
      foreign("/H:f (int)"),
  })));
}

TEST_CASE("Erlang: names have a module, a function and an arity", "[names]") {
  check(GENERATE(values<Case>({
      {"$a:b/1", Runtime::erlang, "a:b/1", "", 0},
      {"$a:b/1-CodeInfoPrologue", Runtime::erlang, "a:b/1-CodeInfoPrologue", "", 0},
      {"$:/1", Runtime::erlang, ":/1", "", 0},
      foreign("$/1"),
      foreign("$ab/1"),
      foreign("$a:b/"),
      foreign("$a:b/x"),
      foreign("$a:b"),
      {"$global::x", Runtime::erlang, "x", "", 0},
      // Of jitdumps.
      {"erl_eval:expr/6", Runtime::erlang, "erl_eval:expr/6", "", 0},
      {"a:'-f/4-fun-1-'/5", Runtime::erlang, "a:'-f/4-fun-1-'/5", "", 0},
      {"'Elixir.Enum':map/2", Runtime::erlang, "'Elixir.Enum':map/2", "", 0},
      {"erlang:'/'/2", Runtime::erlang, "erlang:'/'/2", "", 0},
      {"global::arith_compare_shared", Runtime::erlang, "arith_compare_shared", "", 0},
      foreign("global::f()"),
      foreign("global::"),
      foreign("a:b/x"),
      foreign("a:b/1234"),
      foreign("a:/1"),
      foreign(":b/1"),
      foreign("a::b/1"),
      foreign("a b:c/1"),
      foreign("a:b c/1"),
      foreign("a:/b/1"),
      foreign("http://host/1"),
      foreign("a:''/1"),
  })));
}

TEST_CASE("PHP and HHVM: a prefix alone is not a name", "[names]") {
  check(GENERATE(values<Case>({
      foreign("JIT$"),
      {"JIT$f", Runtime::php, "f", "", 0},
      {"JIT$/a.php", Runtime::php, "/a.php", "/a.php", 0},
      {"JIT$$x", Runtime::php, "x", "", 0},
      foreign("TRACE-$f$1"),
      foreign("TRACE-x$f$1"),
      {"TRACE-1$f$1", Runtime::php, "f", "", 1},
      {"TRACE-1$f", Runtime::php, "f", "", 0},
      {"TRACE-1$$1", Runtime::php, "$1", "", 0},
      foreign("PHP::"),
      {"PHP::f", Runtime::hhvm, "f", "", 0},
      {"PHP::/a.php::f", Runtime::hhvm, "f", "/a.php", 0},
      {"PHP::/a.php::", Runtime::hhvm, "/a.php::", "", 0},
      {"PHP::a::f", Runtime::hhvm, "a::f", "", 0},
  })));
}

TEST_CASE("Julia and Ruby: function names are not empty", "[names]") {
  check(GENERATE(values<Case>({
      {"julia_f_1", Runtime::julia, "f", "", 0},
      foreign("julia__1"),
      foreign("julia_f_"),
      foreign("julia_f_x"),
      foreign("julia_1"),
      foreign("[JIT] "),
      {"[JIT] f", Runtime::ruby, "f", "", 0},
      {"[JIT] f@a.rb:1", Runtime::ruby, "f", "a.rb", 1},
      {"[JIT] @a.rb:1", Runtime::ruby, "@a.rb:1", "", 0},
      {"[JIT] f@:1", Runtime::ruby, "f@:1", "", 0},
      {"[JIT] f@a.rb:", Runtime::ruby, "f@a.rb:", "", 0},
  })));
}

TEST_CASE("LuaJIT and PyPy: traces have a number", "[names]") {
  check(GENERATE(values<Case>({
      {"TRACE_1::f.lua:3", Runtime::luajit, "TRACE_1", "f.lua", 3},
      {"TRACE_1::f.lua", Runtime::luajit, "TRACE_1", "", 0},
      foreign("TRACE_::f.lua:3"),
      foreign("TRACE_x::f.lua:3"),
      {"Loop 1 (f;/t.py:1-3~#12 FOR_ITER)", Runtime::pypy, "f", "/t.py", 1},
      {"Loop 1 (;/t.py:1-3~#12 FOR_ITER)", Runtime::pypy, "Loop 1 (;/t.py:1-3~#12 FOR_ITER)", "",
       0},
      {"Loop 1 (f)", Runtime::pypy, "Loop 1 (f)", "", 0},
      foreign("Loop  (f;/t.py:1-3~#12 FOR_ITER)"),
      foreign("Loop 1"),
  })));
}

TEST_CASE("wasmtime and .NET: limits of their names", "[names]") {
  check(GENERATE(values<Case>({
      {"wasm[0]::function[1]::f", Runtime::wasm, "f", "", 0},
      {"wasm[0]::function[1]::", Runtime::wasm, "wasm[0]::function[1]::", "", 0},
      {"wasm::wasm[0]::function[1]", Runtime::wasm, "wasm[0]::function[1]", "", 0},
      {"void [lib] T::f()[Tier0]", Runtime::dotnet, "T::f()", "", 0},
      {"void T::f()[Tier0]", Runtime::dotnet, "T::f()", "", 0},
      {"T::f()[Tier0]", Runtime::dotnet, "T::f()", "", 0},
      foreign("f[Tier0]"),
      foreign("[Tier0]"),
      {"stub<1> f", Runtime::dotnet, "stub<1> f", "", 0},
      foreign("stub f"),
  })));
}

TEST_CASE("HotSpot: methods have a return type before them and parentheses after them", "[names]") {
  check(GENERATE(values<Case>({
      {"int a.b()", Runtime::hotspot, "a.b()", "", 0},
      foreign(" a.b()"),
      foreign("int a.b("),
      foreign("int ab()"),
      foreign("a.b()"),
      {"La;::b", Runtime::hotspot, "La;::b", "", 0},
      foreign("La;:b"),
  })));
}

}  // namespace perfmap::name_limits_test
