// SPDX-License-Identifier: MIT
#include <fstream>
#include <string>

#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::names_test {
namespace {

struct Case {
  std::string raw;
  std::string tier;
  std::string function;
  std::string file;
  std::uint64_t line;
  std::uint64_t column;
};

void check(Runtime runtime, const Case& c) {
  CAPTURE(c.raw);
  const DecodedName name = decode_name(c.raw);
  CHECK(name.runtime == runtime);
  CHECK(name.tier == c.tier);
  CHECK(name.function == c.function);
  CHECK(name.file == c.file);
  CHECK(name.line == c.line);
  CHECK(name.column == c.column);
}

}  // namespace

TEST_CASE("V8's names give tier, function, file, line and column", "[names]") {
  check(Runtime::v8,
        GENERATE(values<Case>({
            {"RegExp.< src: '^(a+)$' flags: 'g'", "regexp", "'^(a+)$' flags: 'g'", "", 0, 0},
            {"RegExp.> src: '^(a+)$' flags: 'g'", "regexp", "'^(a+)$' flags: 'g'", "", 0, 0},
            {"JS:*'foo /a.js:1:13", "turbofan", "foo", "/a.js", 1, 13},
            {"JS:+'foo /a.js:1:13", "maglev", "foo", "/a.js", 1, 13},
            {"JS:o*foo /a.js:1:13", "turbofan", "foo", "/a.js", 1, 13},
            {"JS:o+orange /a.js:1:13", "maglev", "orange", "/a.js", 1, 13},
            {"JS:foo /a.js:1:13", "", "foo", "/a.js", 1, 13},
            {"JS:^o /a.js:2:87", "baseline", "o", "/a.js", 2, 87},
            {"LazyCompile:*foo /a.js:1:13", "turbofan", "foo", "/a.js", 1, 13},
            {"JS:~ /a.js:1:13", "interpreted", "", "/a.js", 1, 13},
            {"Eval:~ :1:1", "interpreted", "", "", 1, 1},
            {"JS:~ev :1:12", "interpreted", "ev", "", 1, 12},
            {"JS:^set size /srv/my app/a b.js:3:9", "baseline", "set size", "/srv/my app/a b.js", 3,
             9},
            {"JS:*GET /users file:///srv/t%20r.mjs:2:31", "turbofan", "GET /users",
             "file:///srv/t%20r.mjs", 2, 31},
            {"JS:*GET /users /srv/t.js:2:31", "turbofan", "GET /users", "/srv/t.js", 2, 31},
            {"JS:~#p node:net:1:56", "interpreted", "#p", "node:net", 1, 56},
            {"JS:~<static_initializer> /a.js:1:128", "interpreted", "<static_initializer>", "/a.js",
             1, 128},
            {"JS:~f evalmachine.<anonymous>:1:2", "interpreted", "f", "evalmachine.<anonymous>", 1,
             2},
            {"JS:in-0-liftoff", "baseline", "in", "", 0, 0},
            {"JS:*wasm-function[12]-12-turbofan", "turbofan", "wasm-function[12]", "", 0, 0},
            {"Stub:js-to-wasm:i:i", "stub", "js-to-wasm:i:i", "", 0, 0},
            {"JS:~", "interpreted", "", "", 0, 0},
            {"JS:*f /a.js:99999999999999999999999:1", "turbofan", "f",
             "/a.js:99999999999999999999999", 1, 0},
        })));
}

TEST_CASE("HotSpot's own code is distinguished from methods", "[names]") {
  check(Runtime::hotspot,
        GENERATE(values<Case>({
            {"Interpreter", "interpreter", "Interpreter", "", 0, 0},
            {"monitorenter_nofpu Runtime1 stub", "stub", "monitorenter_nofpu Runtime1 stub", "", 0,
             0},
            {"StackOverflowError throw_exception", "stub", "StackOverflowError throw_exception", "",
             0, 0},
            {"_new_array_Java", "stub", "_new_array_Java", "", 0, 0},
            {"jni_fast_GetIntField", "stub", "jni_fast_GetIntField", "", 0, 0},
            {"byte[] java.util.Arrays.copyOf(byte[], int)", "",
             "java.util.Arrays.copyOf(byte[], int)", "", 0, 0},
            {"Ljava/lang/String;::hashCode", "", "Ljava/lang/String;::hashCode", "", 0, 0},
        })));
}

TEST_CASE("names of other script engines give tier, function and location", "[names]") {
  check(Runtime::jsc,
        GENERATE(values<Case>({
            {"JSC-FTL: diffProps[Call (StrictMode)] /srv/index.js:123:12", "ftl", "diffProps",
             "/srv/index.js", 123, 12},
            {"JSC-DFG: forEach[Call (StrictMode)]", "dfg", "forEach[Call (StrictMode)]", "", 0, 0},
            {"JSC-FTL: mid#B6K2n1", "ftl", "mid", "", 0, 0},
            {"JSC-FTL: mid#B6K2n", "ftl", "mid#B6K2n", "", 0, 0},
            {"JSC-FTL: #B6K2n1", "ftl", "", "", 0, 0},
            {"JSC-YarrJIT: a+b", "regexp", "a+b", "", 0, 0},
        })));
  check(Runtime::spidermonkey,
        GENERATE(values<Case>({
            {"Ion: filter (self-hosted:1234:5)", "ion", "filter", "self-hosted", 1234, 5},
            {"IonIC: SetElem : AccessibleButton (main.js:3560:25)", "stub",
             "SetElem : AccessibleButton", "main.js", 3560, 25},
            {"BaselineInterpreter", "interpreter", "BaselineInterpreter", "", 0, 0},
        })));
}

TEST_CASE("managed runtimes and tracing compilers are recognised by their prefixes", "[names]") {
  check(Runtime::dotnet,
        GENERATE(values<Case>({
            {"void [System.Private.CoreLib] System.Foo`2[System.__Canon, "
             "int]::Bar()[InstrumentedTier]",
             "instrumented", "System.Foo`2[System.__Canon, int]::Bar()", "", 0, 0},
            {"stub ResolveStub<owner>", "stub", "stub ResolveStub<owner>", "", 0, 0},
        })));
  check(Runtime::ruby, GENERATE(values<Case>({
                           {"[JIT] Integer#times@<internal:numeric>:238", "", "Integer#times",
                            "<internal:numeric>", 238, 0},
                           {"[JIT] leave_exit", "", "leave_exit", "", 0, 0},
                       })));
  check(Runtime::php, {"TRACE-2$/srv/a.php$12", "trace", "/srv/a.php", "/srv/a.php", 12, 0});
  check(Runtime::postgresql, GENERATE(values<Case>({
                                 {"evalexpr_0_12", "", "evalexpr_0_12", "", 0, 0},
                                 {"deform_3_1", "", "deform_3_1", "", 0, 0},
                             })));
  check(Runtime::guile, {"0x7f1b4ddc41d8,+38", "", "0x7f1b4ddc41d8,+38", "", 0, 0});
  for (const char* const raw : {"evalexpr_", "evalexpr_1", "evalexpr_1_", "deform__1", "deform_1_x",
                                "0x,+1", "0x1,+", "0xg,+1", "0x1,1"}) {
    CAPTURE(raw);
    CHECK(decode_name(raw).runtime != Runtime::postgresql);
    CHECK(decode_name(raw).runtime != Runtime::guile);
  }
  check(Runtime::julia, {"japi1_f_12", "", "f", "", 0, 0});
  check(Runtime::mono, {"(wrapper runtime-invoke) object:m (object)", "adapter",
                        "(wrapper runtime-invoke) object:m (object)", "", 0, 0});
}

TEST_CASE("names of native code belong to no runtime", "[names]") {
  const auto raw = GENERATE(as<std::string>(), "Interpreter::run(int)", "InterpreterEntry",
                            "std::shared_ptr<T>::operator->() const", "a::operator->b",
                            "foo in bar", "main", "adapters", " (a.b)", "->", "x::y->z::w");
  CAPTURE(raw);
  const DecodedName name = decode_name(raw);
  CHECK(name.runtime == Runtime::unknown);
  CHECK(name.function == raw);
  CHECK(name.inline_chain.empty());
}

TEST_CASE("inline chains start with the outermost function in both notations of agents",
          "[names]") {
  using Chain = std::vector<std::string_view>;
  CHECK(decode_name("La;::x in Lb;::y").inline_chain == Chain{"Lb;::y", "La;::x"});
  CHECK(decode_name("a.B::x->c.D::y->e.F::<init>").inline_chain ==
        Chain{"a.B::x", "c.D::y", "e.F::<init>"});
  std::string endless = "La;::x";
  for (int i = 0; i < 1000; ++i) endless += "->La;::x";
  CHECK(decode_name(endless).inline_chain.empty());
}

TEST_CASE("a name with a million blanks is decoded in linear time", "[names]") {
  // Quadratic time would be a trillion steps.
  const std::string blanks(1'000'000, ' ');
  CHECK(decode_name("JS:~f" + blanks + ":1:2").line == 1);
  CHECK(decode_name("Ion: f" + blanks + "(a:1:2)").line == 1);
}

TEST_CASE("stable_name() removes the numbers of a run and nothing else", "[names]") {
  const auto [raw, stable] = GENERATE(table<std::string, std::string>({
      {"int Cart$$Lambda$3/0x00007f48b4001000.get(int)", "int Cart$$Lambda.get(int)"},
      {"int Cart$$Lambda+0x00007f48b4001000.get(int)", "int Cart$$Lambda.get(int)"},
      {"int Cart$$Lambda/0x00007f48b4001000.get(int)", "int Cart$$Lambda.get(int)"},
      {"int Cart$$Lambda$3/792791759.get(int)", "int Cart$$Lambda.get(int)"},
      {"void java.lang.invoke.LambdaForm$MH/0x00007f0eb0004000.invoke(java.lang.Object, int)",
       "void java.lang.invoke.LambdaForm$MH.invoke(java.lang.Object, int)"},
      {"void A.f(B$$Lambda$1/0x00007f0eb0004000, B$$Lambda$22/0x00007f0eb0004400)",
       "void A.f(B$$Lambda, B$$Lambda)"},
      {"void jdk.proxy2.$Proxy12.run()", "void jdk.proxy.$Proxy.run()"},
      {"java.lang.Object jdk.internal.reflect.GeneratedMethodAccessor7.invoke(java.lang.Object)",
       "java.lang.Object jdk.internal.reflect.GeneratedMethodAccessor.invoke(java.lang.Object)"},
      {"Lcom/foo/H$$Lambda$1.0x00000008200d4c50;apply(Ljava/lang/Object;)V",
       "Lcom/foo/H$$Lambda;apply(Ljava/lang/Object;)V"},
      {"Ljdk/proxy1/$Proxy2;get()V", "Ljdk/proxy/$Proxy;get()V"},
      {"void A$$Lambda$1/0x000020.run()", "void A$$Lambda/0x000020.run()"},
      {"void A.lambda$main$0(int)", "void A.lambda$main$0(int)"},
      {"void A$1.f2(int)", "void A$1.f2(int)"},
      {"julia_f_12", "julia_f"},
      {"julia_f_3_12", "julia_f_3"},
      {"jlplt_memset_12", "jlplt_memset"},
      {"TRACE_7::a.lua:12", "TRACE::a.lua:12"},
      {"evalexpr_0_9", "evalexpr"},
      {"deform_12_3", "deform"},
      {"stub<12> GenerateDispatchStub<X>", "stub GenerateDispatchStub<X>"},
      {"stub GenerateDispatchStub<X>", "stub GenerateDispatchStub<X>"},
      {"int32 [System.Linq.Expressions] dynamicClass::lambda_method12(object)[Optimized]",
       "int32 [System.Linq.Expressions] dynamicClass::lambda_method(object)[Optimized]"},
      {"tb-0x7f0eb0004000", "tb"},
      {"guest-0x7ff22796ed8a", "guest"},
      {"void com.x.My$Proxy12.run()", "void com.x.My$Proxy12.run()"},
      {"guest-0x400123", "guest-0x400123"},
      {"Loop 3 (f;/t.py:1-3~#12 FOR_ITER)", "Loop (f;/t.py:1-3~#12 FOR_ITER)"},
      {"bridge out of Guard 0x7f0eb0004000", "bridge out of Guard"},
      {"JS:*f /a/0x00007f48b4001000_12:1:13", "JS:*f /a/0x00007f48b4001000_12:1:13"},
      {"std::f_12", "std::f_12"},
      {"", ""},
  }));
  CHECK(stable_name(raw) == stable);
}

TEST_CASE("without_tier() merges the tiers of a function and nothing else", "[names]") {
  const auto [raw, shared] = GENERATE(table<std::string, std::string>({
      {"JS:o*foo /a.js:1:13", "foo /a.js:1:13"},
      {"LazyCompile:^foo /a.js:1:13", "foo /a.js:1:13"},
      {"JS:^ /a.js:1:13", "(anonymous) /a.js:1:13"},
      {"JS:add-12-liftoff", "add-12"},
      {"JS:add-12-turbofan", "add-12"},
      {"Eval:~ :1:1", "(anonymous) :1:1"},
      {"Builtin:Call", "Builtin:Call"},
      {"py::f:/t.py", "py::f:/t.py"},
      {"Ion: f (a.js:1:2)", "f (a.js:1:2)"},
      {"Baseline: f (a.js:1:2)", "f (a.js:1:2)"},
      {"void [A] N.T::M(int32)[OptimizedTier1]", "void [A] N.T::M(int32)"},
      {"stub<1> X<y>", "stub<1> X<y>"},
      // A bridge method differs from its method only in the return type.
      {"java.lang.Object A.get()", "java.lang.Object A.get()"},
      {"java.lang.String A.get()", "java.lang.String A.get()"},
      {"julia_f_12", "julia_f_12"},
      {"JSC-FTL: mid#B6K2n1", "mid#B6K2n1"},
      {"TRACE-3$A::f$12", "A::f"},
      {"TRACE-3$", "TRACE-3$"},
      {"JIT$A::f", "A::f"},
      {"JIT$$hot_stub", "JIT$$hot_stub"},
      {"JSC-DFG: #B6K2n1", "(anonymous)#B6K2n1"},
  }));
  CHECK(without_tier(raw) == shared);
}

TEST_CASE("every name from real runtimes is recognised", "[wild][names]") {
  const auto [file, runtime] =
      GENERATE(table<std::string, Runtime>({{"node-20.txt", Runtime::v8},
                                            {"deno-2.9.txt", Runtime::v8},
                                            {"bun-1.4.txt", Runtime::jsc},
                                            {"postgresql-15.txt", Runtime::postgresql},
                                            {"guile-3.0.txt", Runtime::guile},
                                            {"openjdk-17.txt", Runtime::hotspot}}));
  std::ifstream names(test::tests_dir("/wild/names/" + file));
  std::size_t lines = 0;
  for (std::string raw; std::getline(names, raw); ++lines) {
    CAPTURE(raw);
    CHECK((decode_name(raw).runtime == runtime || raw == "adapters"));
  }
  CHECK(lines > 10);
}

}  // namespace perfmap::names_test
