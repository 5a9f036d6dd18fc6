// SPDX-License-Identifier: MIT
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::wild_test {
namespace {

std::string wild(const std::string& name) { return test::tests_dir("/wild/" + name); }

Index index_of(const std::string& name) {
  Result<Input> input = Input::open(wild(name));
  REQUIRE(input);
  std::vector<Map> maps;
  maps.emplace_back(*std::move(input));
  Diagnostics problems(1);
  Index index(std::move(maps), Overlap::last, problems);
  CHECK(problems.total() == 0);
  return index;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

/// Undoes the escapes of tests/wild/README.md; these files contain only escaped backslashes.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

}  // namespace

TEST_CASE("each address that perf named from a real map has the same name", "[wild]") {
  struct Case {
    std::string map;
    std::string truth;
  };
  const auto c = GENERATE(values<Case>({{"node/perf-603.map", "node/truth-603.tsv"},
                                        {"java/perf-5404.map", "java/truth-5404.tsv"},
                                        {"java/perf-5340.map", "java/truth-5340.tsv"}}));
  const Index index = index_of(c.map);
  std::ifstream truth(wild(c.truth));
  std::size_t rows = 0;
  for (std::string line; std::getline(truth, line); ++rows) {
    const std::vector<std::string> fields = split(line);
    REQUIRE(fields.size() == 7);
    CAPTURE(line);
    const auto entry = index.find_entry(*parse_hex(fields[1]));
    REQUIRE(entry);
    CHECK(entry->name == unescaped(fields[3]));
    CHECK(entry->range.begin == *parse_hex(fields[4]));
  }
  CHECK(rows > 100);
}

TEST_CASE("the filter names JIT frames that perf left unnamed, and changes nothing else",
          "[wild]") {
  const Index index = index_of("node/perf-603.map");
  PerfScriptFilter filter(
      [&](pid_t, const Query& query, PerfScriptFilter::Name& name) {
        const auto entry = index.find_entry(query.address);
        if (!entry) return false;
        name = {entry->name, entry->range.begin};
        return true;
      },
      [](pid_t) { return 0; });
  std::ifstream script(wild("node/script-603.txt"));
  std::size_t named = 0;
  for (std::string line; std::getline(script, line);) {
    std::string same;
    filter.filter(line, same);
    CHECK(same == line);
    // The line that perf prints without a map.
    const std::size_t dso = line.find(" (/tmp/perf-603.map)");
    if (dso == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t");
    const std::size_t symbol = line.find(' ', start);
    const std::string unnamed = line.substr(0, symbol) + " [unknown]" + line.substr(dso);
    std::string again;
    filter.filter(unnamed, again);
    CHECK(again == line);
    ++named;
  }
  CHECK(named > 20);
}

TEST_CASE("names of real maps are decoded", "[wild][names]") {
  struct Case {
    std::string raw;
    Runtime runtime;
    std::string tier;
    std::string function;
    std::string file;
    std::uint64_t line;
  };
  const auto c = GENERATE(values<Case>({
      {"JS:~refreshRuntimeOptions node:internal/process/pre_execution:212:31", Runtime::v8,
       "interpreted", "refreshRuntimeOptions", "node:internal/process/pre_execution", 212},
      {"JS:~ node:internal/streams/legacy:1:1", Runtime::v8, "interpreted", "",
       "node:internal/streams/legacy", 1},
      {"JS:^get size /srv/my app/a b.js:3:9", Runtime::v8, "baseline", "get size",
       "/srv/my app/a b.js", 3},
      {"JS:*foo file:///a.mjs:1:13", Runtime::v8, "turbofan", "foo", "file:///a.mjs", 1},
      {"JS:wasm-function[0]-0-turbofan", Runtime::v8, "turbofan", "wasm-function[0]", "", 0},
      {"Builtin:RecordWriteSaveFP", Runtime::v8, "builtin", "RecordWriteSaveFP", "", 0},
      {"BytecodeHandler:Star.Wide", Runtime::v8, "bytecode", "Star.Wide", "", 0},
      {"RegExp:^[a-z]+ ;$", Runtime::v8, "regexp", "^[a-z]+ ;$", "", 0},
      {"int java.lang.Object.hashCode()", Runtime::hotspot, "", "java.lang.Object.hashCode()", "",
       0},
      {"Interpreter", Runtime::hotspot, "interpreter", "Interpreter", "", 0},
      {"StubRoutines (1)", Runtime::hotspot, "stub", "StubRoutines (1)", "", 0},
      {"py::bar.<locals>.g:/run/t.py", Runtime::cpython, "trampoline", "bar.<locals>.g",
       "/run/t.py", 0},
      {"instance void [System.Linq] Ns.Type+Nested::Method(int32,int32)[OptimizedTier1]",
       Runtime::dotnet, "tier1", "Ns.Type+Nested::Method(int32,int32)", "", 0},
      {"stub<12> GenerateDispatchStub<owner>", Runtime::dotnet, "stub",
       "stub<12> GenerateDispatchStub<owner>", "", 0},
      {"$lists:map/2", Runtime::erlang, "", "lists:map/2", "", 0},
      {"$global::call_light_bif", Runtime::erlang, "stub", "call_light_bif", "", 0},
      {"H:F (int)", Runtime::mono, "", "H:F (int)", "", 0},
      {"JIT$Foo::bar", Runtime::php, "", "Foo::bar", "", 0},
      {"TRACE-1$foo$3", Runtime::php, "trace", "foo", "", 3},
      {"TRACE_1::file.lua:12", Runtime::luajit, "trace", "TRACE_1", "file.lua", 12},
      {"PHP::/a/b.php::f", Runtime::hhvm, "", "f", "/a/b.php", 0},
      {"guest-0x400123", Runtime::qemu, "", "guest-0x400123", "", 0},
      {"wasm[0]::function[12]::add", Runtime::wasm, "wasm", "add", "", 0},
      {"julia_f_12", Runtime::julia, "", "f", "", 0},
      {"[JIT] Integer#times", Runtime::ruby, "", "Integer#times", "", 0},
      {"Loop 1 (f;/tmp/t.py:1-3~#12 FOR_ITER)", Runtime::pypy, "trace", "f", "/tmp/t.py", 1},
      {"some_function", Runtime::unknown, "", "some_function", "", 0},
      {"void ns::f(int)", Runtime::unknown, "", "void ns::f(int)", "", 0},
      {"", Runtime::unknown, "", "", "", 0},
  }));
  CAPTURE(c.raw);
  const DecodedName name = decode_name(c.raw);
  CHECK(name.runtime == c.runtime);
  CHECK(name.tier == c.tier);
  CHECK(name.function == c.function);
  CHECK(name.file == c.file);
  CHECK(name.line == c.line);
}

TEST_CASE("a chain of inlined functions is split", "[names]") {
  const DecodedName name = decode_name("La/B;::outer->Lc/D;::inner");
  CHECK(name.inline_chain == std::vector<std::string_view>{"La/B;::outer", "Lc/D;::inner"});
  CHECK(name.function == "Lc/D;::inner");
}

TEST_CASE("without its tier a name is the same for all tiers", "[names]") {
  CHECK(without_tier("JS:*foo /a.js:1:13") == "foo /a.js:1:13");
  CHECK(without_tier("JS:~foo /a.js:1:13") == "foo /a.js:1:13");
  CHECK(without_tier("plain") == "plain");
}

}  // namespace perfmap::wild_test
