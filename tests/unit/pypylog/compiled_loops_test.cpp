// SPDX-License-Identifier: MIT
#include "perfmap/diagnostic.hpp"
#include "perfmap/pypylog.hpp"
#include "pypylog/pypy_lines.hpp"
#include "support/catch.hpp"

namespace perfmap::compiled_loops_test {
namespace {

LoopProfile profile_of(const std::string& log) {
  LoopProfile profile({.keep_code_bytes = true});
  profile.add(log);
  profile.finish();
  return profile;
}

std::string addresses(const std::string& lines) {
  return "[a] {jit-backend-addr\n" + lines + "[b] jit-backend-addr}\n";
}

const std::string kLoopLines =
    "Loop 1 (f;/t.py:8-10~#12 FOR_ITER) has address 0x1080 to 0x1200 (bootstrap 0x1000)\n"
    "       gc table: 0xff0\n       function: 0x1000\n         resops: 0x1080\n"
    "       failures: 0x1200\n            end: 0x1300\n";
const std::string kBridgeLines =
    "bridge out of Guard 0xa1 has address 0x2000 to 0x2100\n       gc table: 0x1ff0\n"
    "    jump target: 0x2000\n         resops: 0x200e\n       failures: 0x2100\n"
    "            end: 0x2180\n";

}  // namespace

TEST_CASE("code locations are parsed in both forms that releases of PyPy print", "[pypylog]") {
  const PypyPlace now = parse_pypy_place("f;/tmp/a:b.py:8-10~#12 FOR_ITER");
  CHECK(now.function == "f");
  CHECK(now.file == "/tmp/a:b.py");
  CHECK(now.first_line == 8);
  CHECK(now.line == 10);
  CHECK(now.opcode == "FOR_ITER");
  const PypyPlace before =
      parse_pypy_place("<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER");
  CHECK(before.function == "f");
  CHECK(before.file == "/tmp/t.py");
  CHECK(before.line == 8);
  CHECK(before.opcode == "FOR_ITER");
  const PypyPlace other = parse_pypy_place("StrLiteralSearch at 11/51 [17. 8. 3]");
  CHECK(other.function == "StrLiteralSearch at 11/51 [17. 8. 3]");
  CHECK(other.file.empty());
}

TEST_CASE("an event's name ends before its comment, but '#' inside a location is part of it",
          "[pypylog]") {
  CHECK(event_name("loop1      # e.g. an entry bridge") == "loop1");
  CHECK(event_name("  loop#1\t#2") == "loop#1");
  CHECK(event_name("# no name").empty());
  CHECK(event_name("Loop 1 (f;/my #dir/t.py:8-10~#12 FOR_ITER)") ==
        "Loop 1 (f;/my #dir/t.py:8-10~#12 FOR_ITER)");
  CHECK(event_name("Loop 1 (f;/t.py:8-10~#12 FOR_ITER) # (why)") ==
        "Loop 1 (f;/t.py:8-10~#12 FOR_ITER)");
  CHECK(event_name("Loop 1 # x") == "Loop 1");
}

TEST_CASE("code before the entry and after the failures belongs to the loop", "[pypylog]") {
  const auto code_with = [](const std::string& part) {
    const LoopProfile profile = profile_of(
        addresses("Loop 1 (f;/t.py:8-10~#12 FOR_ITER) has address 0x1080 to 0x1200\n" + part));
    return profile.loops().all()[0].code;
  };
  CHECK(code_with("       function: 0x1000\n") == AddressRange{0x1000, 0x200});
  CHECK(code_with("    jump target: 0x1040\n") == AddressRange{0x1040, 0x1c0});
  CHECK(code_with("            end: 0x1300\n") == AddressRange{0x1080, 0x280});
  CHECK(code_with("       gc table: 0xff0\n") == AddressRange{0x1080, 0x180});
}

TEST_CASE("machine code ranges from its start to its end, entry and failures included",
          "[pypylog]") {
  const LoopProfile profile = profile_of(addresses(kLoopLines) + addresses(kBridgeLines));
  REQUIRE(profile.loops().all().size() == 2);
  const CompiledLoop& loop = profile.loops().all()[0];
  CHECK(loop.name == "Loop 1 (f;/t.py:8-10~#12 FOR_ITER)");
  CHECK(loop.code == AddressRange{0x1000, 0x300});
  CHECK(loop.line == 10);
  const CompiledLoop& bridge = profile.loops().all()[1];
  CHECK(bridge.kind == CompiledLoop::Kind::bridge);
  CHECK(bridge.id == 0xa1);
  CHECK(bridge.code == AddressRange{0x2000, 0x180});
}

TEST_CASE("addresses of old releases have no 0x and no parts", "[pypylog]") {
  const LoopProfile profile = profile_of(addresses(
      "Loop 0 (<code object f. file 't.py'. line 2> #9 FOR_ITER) has address 1080 to 1200 "
      "(bootstrap 1000)\nbridge out of Guard 5 has address 2000 to 2100\n"));
  REQUIRE(profile.loops().all().size() == 2);
  CHECK(profile.loops().all()[0].code == AddressRange{0x1000, 0x200});
  CHECK(profile.loops().all()[0].function == "f");
  CHECK(profile.loops().all()[1].code == AddressRange{0x2000, 0x100});
  CHECK(profile.loops().all()[1].id == 5);
}

TEST_CASE("interleaved lines of two processes are assigned to loops by their addresses",
          "[pypylog]") {
  const LoopProfile profile = profile_of(
      "[1] {jit-backend-addr\n[2] {jit-backend-addr\n"
      "Loop 1 (f;/t.py:8-10~#12 FOR_ITER) has address 0x1080 to 0x1200 (bootstrap 0x1000)\n"
      "bridge out of Guard 0xa1 has address 0x2000 to 0x2100\n"
      "       function: 0x1000\n    jump target: 0x2000\n            end: 0x2180\n"
      "            end: 0x1300\n[3] jit-backend-addr}\n[4] jit-backend-addr}\n");
  REQUIRE(profile.loops().all().size() == 2);
  CHECK(profile.loops().all()[0].code == AddressRange{0x1000, 0x300});
  CHECK(profile.loops().all()[1].code == AddressRange{0x2000, 0x180});
}

TEST_CASE("invalid addresses are reported, and the loop has no code", "[pypylog]") {
  const LoopProfile profile =
      profile_of(addresses("Loop 1 (f) has address 0x2000 to 0x1000 (bootstrap 0x1000)\n"));
  REQUIRE(profile.loops().all().size() == 1);
  CHECK(profile.loops().all()[0].code.size == 0);
  CHECK(profile.problems().count_of(rule::kOddCode) == 1);
}

TEST_CASE("a loop number that is compiled again is a new loop", "[pypylog]") {
  const LoopProfile profile =
      profile_of(addresses(kLoopLines) + addresses(kLoopLines) +
                 "[1] {jit-backend-counts\nentry 1:7\n[2] jit-backend-counts}\n");
  REQUIRE(profile.loops().all().size() == 2);
  CHECK(!profile.loops().all()[0].entries);
  CHECK(profile.loops().all()[1].entries == 7U);
  CHECK(profile.loops().find("1") == 1);
}

TEST_CASE("the counts of a reused loop number all belong to the later loop", "[pypylog]") {
  const LoopProfile profile = profile_of(
      addresses(kLoopLines) +
      "[1] {jit-log-opt-loop\n# Loop 1 (f;/t.py:8-10~#12 FOR_ITER) : loop with 4 ops\n"
      "+1: label(p0, descr=TargetToken(77))\n[2] jit-log-opt-loop}\n" +
      addresses(kLoopLines) +
      "[f0] {jit-backend-counts\nentry 1:5\nTargetToken(77):1000\n[f1] jit-backend-counts}\n");
  REQUIRE(profile.loops().all().size() == 2);
  CHECK(!profile.loops().all()[0].iterations());
  CHECK(profile.loops().all()[1].iterations() == 1000U);
  CHECK(profile.loops().all()[1].entries == 5U);
}

TEST_CASE("counts are assigned to loops, labels and bridges, with or without operations",
          "[pypylog]") {
  const std::string counts =
      "[f0] {jit-backend-counts\nentry 1:3\nTargetToken(111):10\nTargetToken(112):4990\n"
      "bridge 161:42\n[f1] jit-backend-counts}\n";
  const LoopProfile bare = profile_of(addresses(kLoopLines) + addresses(kBridgeLines) + counts);
  CHECK(bare.loops().all()[0].entries == 3U);
  CHECK(bare.loops().all()[0].iterations() == 5000U);
  CHECK(bare.loops().all()[1].iterations() == 42U);
  const LoopProfile told = profile_of(
      "[1] {jit-log-opt-loop\n# Loop 1 (f;/t.py:8-10~#12 FOR_ITER) : loop with 4 ops\n"
      "+1: label(p0, descr=TargetToken(111))\n+2: label(p0, descr=TargetToken(112))\n"
      "+3: p7 = guard_exception(9, descr=<Guard0xa1>) [p0]\n[2] jit-log-opt-loop}\n" +
      addresses(kBridgeLines) + counts);
  const CompiledLoop& loop = told.loops().all()[0];
  CHECK(loop.labels.size() == 2);
  CHECK(loop.iterations() == 5000U);
  REQUIRE(loop.guards.size() == 1);
  CHECK(loop.guards[0].operation == "guard_exception");
  CHECK(loop.guards[0].bridge == 1);
  CHECK(told.loops().all()[1].owner == 0);
}

TEST_CASE("a bridge from a bridge belongs to the loop, and is inner if it jumps back there",
          "[pypylog]") {
  const std::string log =
      "[1] {jit-log-opt-loop\n# Loop 1 (f;/t.py:8-10~#12 FOR_ITER) : loop with 2 ops\n"
      "+1: label(p0, descr=TargetToken(111))\n+3: guard_true(i0, descr=<Guard0xa1>) [p0]\n"
      "[2] jit-log-opt-loop}\n"
      "[3] {jit-log-opt-bridge\n# bridge out of Guard 0xa1 with 2 ops\n"
      "debug_merge_point(0, 0, 'f;/t.py:8-11~#20 LOAD_FAST')\n"
      "+3: guard_true(i0, descr=<Guard0xa2>) [p0]\n+4: finish(p1, descr=<D>)\n"
      "[4] jit-log-opt-bridge}\n"
      "[5] {jit-log-opt-bridge\n# bridge out of Guard 0xa2 with 2 ops\n"
      "+4: jump(p0, descr=TargetToken(111))\n[6] jit-log-opt-bridge}\n";
  const LoopProfile profile = profile_of(log);
  REQUIRE(profile.loops().all().size() == 3);
  const CompiledLoop& first = profile.loops().all()[1];
  CHECK_FALSE(first.is_inner);
  CHECK(first.loop == 0);
  CHECK(first.line == 11);
  const CompiledLoop& second = profile.loops().all()[2];
  CHECK(second.owner == 1);
  CHECK(second.loop == 0);
  CHECK(second.is_inner);
}

TEST_CASE("bridges that own each other or themselves belong to no loop", "[pypylog]") {
  const auto bridge = [](const std::string& guard, const std::string& inside) {
    return "[1] {jit-log-opt-bridge\n# bridge out of Guard 0x" + guard +
           " with 2 ops\n+1: label(p0, descr=TargetToken(7))\n+2: guard_true(i0, descr=<Guard0x" +
           inside + ">) [p0]\n+3: jump(p0, descr=TargetToken(7))\n[2] jit-log-opt-bridge}\n";
  };
  const LoopProfile profile =
      profile_of(bridge("a1", "a2") + bridge("a2", "a1") + bridge("a3", "a3"));
  REQUIRE(profile.loops().all().size() == 3);
  CHECK(profile.loops().all()[0].owner == 1);
  CHECK(profile.loops().all()[1].owner == 0);
  CHECK(profile.loops().all()[2].owner == CompiledLoop::kNone);
  for (const CompiledLoop& one : profile.loops().all()) {
    CHECK(one.loop == CompiledLoop::kNone);
    CHECK_FALSE(one.is_inner);
  }
}

TEST_CASE("the spans of operations and code bytes point into the log", "[pypylog]") {
  const std::string log =
      "[1] {jit-log-opt-loop\n# Loop 1 (f) : loop with 1 ops\n+1: finish()\n[2] jit-log-opt-loop}\n"
      "[3] {jit-backend-dump\nBACKEND x86_64\nCODE_DUMP @1000 +16  48894D\n[4] jit-backend-dump}\n";
  const LoopProfile profile = profile_of(log);
  const LogSpan& operations = profile.loops().all()[0].operations;
  CHECK(log.substr(operations.offset, operations.size) ==
        "# Loop 1 (f) : loop with 1 ops\n+1: finish()\n");
  REQUIRE(profile.loops().code_bytes().size() == 1);
  const CodeBytes& bytes = profile.loops().code_bytes()[0];
  CHECK(bytes.address == 0x1010);
  CHECK(log.substr(bytes.hex.offset, bytes.hex.size) == "48894D");
}

}  // namespace perfmap::compiled_loops_test
