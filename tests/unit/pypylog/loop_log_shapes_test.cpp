// SPDX-License-Identifier: MIT
#include "perfmap/diagnostic.hpp"
#include "support/loop_logs.hpp"

namespace perfmap::loop_log_shapes_test {

using namespace test;

TEST_CASE("a log that starts inside a section is reported, and its times count", "[pypylog]") {
  const LoopProfile profile = profile_of("loop0\n[20] jit-profile-enter}\n[30] jit-backend}\n" +
                                         enter(40, "a") + leave(60, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 21}, {"a", 20}});
  CHECK(profile.problems().count_of(rule::kUnopenedSection) == 2);
  CHECK(profile.problems().items()[0].where.line == 2);
  CHECK(profile.ticks() == 41);
}

TEST_CASE("a log that ends inside a section counts up to its last line", "[pypylog]") {
  const LoopProfile open =
      profile_of(enter(10, "a") + "[50] {gc-minor\n[60] {gc-walk\n[70] {gc-x\n");
  CHECK(ticks_of(open) == Ticks{{"", 0}, {"a", 60}});
  CHECK(category(open, "gc-minor") == 10);
  CHECK(category(open, "gc-walk") == 10);
  CHECK(open.problems().count_of(rule::kUnendedSection) == 3);

  SECTION("an incomplete last line is ignored") {
    CHECK(profile_of(enter(10, "a") + "[50] {gc-mi").ticks() == 1);
    CHECK(profile_of(enter(10, "a") + "[50] {gc-minor\n[60] gc-minor}").ticks() == 50);
  }
  SECTION("an event without a name ends the previous loop") {
    const LoopProfile cut = profile_of(enter(10, "a") + "[50] {jit-profile-enter\n[70] {b\n");
    CHECK(ticks_of(cut) == Ticks{{"", 20}, {"a", 40}});
    CHECK(cut.problems().count_of(rule::kUnnamedLoop) == 0);  // the log may still grow
    CHECK(profile_of("[1] {jit-profile-enter\n[2] jit-profile-enter}\n")
              .problems()
              .count_of(rule::kUnnamedLoop) == 1);
  }
}

TEST_CASE("a tick that runs backwards counts 0 and is reported", "[pypylog]") {
  const LoopProfile profile =
      profile_of(enter(100, "a") + "[80] {gc-minor\n[90] gc-minor}\n" + leave(200, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 100}});
  CHECK(category(profile, "gc-minor") == 0);
  CHECK(profile.problems().count_of(rule::kTickRunsBack) == 2);
  CHECK(profile.problems().items()[0].where.line == 4);
}

TEST_CASE("a tick that runs backwards is reported with its own line", "[pypylog]") {
  const LoopProfile profile =
      profile_of("[100] {a\n[150] {b\nx\n[60] b}\n[50] {c\n[40] c}\n[200] a}\n");
  std::vector<std::uint64_t> lines;
  for (const Diagnostic& problem : profile.problems().items()) lines.push_back(problem.where.line);
  CHECK(lines == std::vector<std::uint64_t>{4, 5, 6});
}

TEST_CASE("a section ends with its enclosing section", "[pypylog]") {
  const LoopProfile profile = profile_of("[10] {a\n[20] {b\n[30] {c\n[50] a}\n[60] {a\n[61] a}\n");
  CHECK(category(profile, "a") == 11);
  CHECK(category(profile, "b") == 10);
  CHECK(category(profile, "c") == 20);
  CHECK(profile.rest() == 10);
  CHECK(profile.problems().count_of(rule::kUnendedSection) == 2);
}

TEST_CASE("time outside the requested range is not counted", "[pypylog]") {
  const Options options{.from = PypylogTick{0x150, 150}, .to = PypylogTick{0x300, 300}};
  const LoopProfile profile = profile_of(kSketch, options);
  CHECK(ticks_of(profile) == Ticks{{"", 0}, {"loop1", 50}, {"loop0", 100}});
  CHECK(profile.ticks() == 150);
  CHECK(entered(profile, "loop1") == 0);
  CHECK(entered(profile, "loop0") == 1);
}

TEST_CASE("torn and interleaved lines are skipped without other effects", "[pypylog]") {
  const std::string torn = "[1[20] {gc-minor\n[25] {a b\nx[26] {c\n[] {d\n";
  const LoopProfile profile = profile_of(enter(10, "a") + torn + leave(60, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 50}});
  CHECK(profile.categories().size() == 2);
}

TEST_CASE("terminal colours and carriage returns are ignored", "[pypylog]") {
  const std::string log =
      "\x1b[1m\x1b[31m[10] {jit-profile-enter\r\n\x1b[0mloop0\r\n"
      "\x1b[31m[11] jit-profile-enter}\r\n\x1b[0m[30] {jit-profile-exit\x1b[0m\r\nloop0\r\n"
      "[31] jit-profile-exit}\r\n";
  CHECK(ticks_of(profile_of(log)) == Ticks{{"", 1}, {"loop0", 20}});
}

TEST_CASE("a log larger than a chunk is counted right; names in other sections are no events",
          "[pypylog]") {
  std::string log;
  for (unsigned i = 0; i < 4000; ++i) {
    const std::string name = "loop" + std::to_string(i % 7);
    log += enter(100 * i, name) + "[" + std::to_string(100 * i + 50) + "] {gc-minor\n" + name +
           "\n[" + std::to_string(100 * i + 60) + "] gc-minor}\n" + leave(100 * i + 70, name);
  }
  const LoopProfile profile = profile_of(log);
  CHECK(entered(profile, "loop0") == 572);
  CHECK(profile.times()[profile.loops().find("loop6")].ticks == 571 * 70);
  CHECK(category(profile, "gc-minor") == 40000);
  CHECK(profile.problems().total() == 0);
}

TEST_CASE("deep nesting and many categories use bounded memory and lose no time", "[pypylog]") {
  std::string deep;
  for (unsigned i = 0; i < 10000; ++i) deep += "[" + std::to_string(i) + "] {a\n";
  const LoopProfile nested = profile_of(deep);
  CHECK(nested.ticks() == 9999);
  CHECK(category(nested, "a") == 9999);
  CHECK(nested.problems().count_of(rule::kTooManySections) == 10000 - 4096);

  for (unsigned i = 0; i < 200; ++i)
    deep += "[" + std::to_string(10000 + i) + "] {b" + std::to_string(i) + "\n";
  for (unsigned i = 0; i < 10; ++i) deep += "[20000] a}\n";
  const LoopProfile unseen = profile_of(deep + "[20001] {c\n[20002] {d\n[20009] d}\n");
  CHECK(unseen.categories().size() == 203);
  CHECK(category(unseen, "c") == 1);
  CHECK(category(unseen, "d") == 7);

  std::string many;
  for (unsigned i = 0; i < 70000; ++i) {
    const std::string name = "c" + std::to_string(i);
    many += "[" + std::to_string(2 * i) + "] {" + name + "\n[" + std::to_string(2 * i + 1) + "] " +
            name + "}\n";
  }
  const LoopProfile categories = profile_of(many);
  CHECK(categories.categories().size() == 65536);
  CHECK(categories.ticks() == 139999);
}

}  // namespace perfmap::loop_log_shapes_test
