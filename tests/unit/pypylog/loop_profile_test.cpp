// SPDX-License-Identifier: MIT
#include "perfmap/diagnostic.hpp"
#include "support/loop_logs.hpp"

namespace perfmap::loop_profile_test {

using namespace test;

TEST_CASE("the example in PyPy's documentation: 100 ticks in the entry bridge, 300 in the loop",
          "[pypylog]") {
  const LoopProfile profile = profile_of(kSketch);
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"loop0", 300}, {"loop1", 100}});
  CHECK(profile.base() == TickBase::dec);
  CHECK(profile.ticks() == 401);
  CHECK(profile.has_events());
}

TEST_CASE("ticks are hexadecimal if any has a letter, else decimal", "[pypylog]") {
  CHECK(ticks_of(profile_of(kSketch, {.base = TickBase::hex})) ==
        Ticks{{"", 1}, {"loop0", 0x300}, {"loop1", 0x100}});
  const LoopProfile late = profile_of(kSketch + "[50a] {a\n[50b] a}\n");
  CHECK(late.base() == TickBase::hex);
  CHECK(ticks_of(late) == Ticks{{"", 0xb}, {"loop0", 0x300}, {"loop1", 0x100}});
  CHECK(profile_of("[19999999999999999999] {a\n").base() == TickBase::dec);

  const LoopProfile odd =
      profile_of("[10] {a\n[1f] a}\n[20] {a\n[30] a}\n", {.base = TickBase::dec});
  CHECK(odd.problems().count_of(rule::kOddTick) == 1);
  CHECK(odd.ticks() == 20);
}

TEST_CASE("entering a loop leaves the previous one", "[pypylog]") {
  const LoopProfile profile =
      profile_of(enter(10, "a") + enter(30, "b") + enter(70, "a") + leave(75, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 25}, {"b", 40}});
  CHECK(entered(profile, "a") == 2);
}

TEST_CASE("a loop gets a number only from a name that contains one", "[pypylog]") {
  const LoopProfile profile = profile_of(enter(10, "a") + leave(60, "a") + enter(70, "Loop 7 (f)"));
  CHECK(profile.loops().all()[profile.loops().find("a")].id == 0);
  CHECK(profile.loops().all()[profile.loops().find("Loop 7 (f)")].id == 7);
}

TEST_CASE("a loop that is never left lasts until the end of the log", "[pypylog]") {
  const LoopProfile profile = profile_of(enter(10, "a") + "[90] {gc-minor\n[95] gc-minor}\n");
  CHECK(ticks_of(profile) == Ticks{{"", 0}, {"a", 85}});
}

TEST_CASE("a loop that is left without being entered has no time and is reported", "[pypylog]") {
  const LoopProfile profile = profile_of(leave(10, "a") + enter(20, "b") + leave(50, "c"));
  CHECK(ticks_of(profile) == Ticks{{"", 11}, {"b", 30}});
  CHECK(profile.problems().count_of(rule::kOtherLoop) == 2);
}

TEST_CASE("time in the collector counts for the loop, and separately for its category",
          "[pypylog]") {
  const std::string gc =
      "[30] {gc-minor\n[32] {gc-minor-walkroots\n[37] gc-minor-walkroots}\n"
      "[40] gc-minor}\n";
  const LoopProfile profile = profile_of(enter(10, "a") + gc + leave(60, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 50}});
  CHECK(category(profile, "gc-minor") == 5);
  CHECK(category(profile, "gc-minor-walkroots") == 5);
  CHECK(category(profile, "jit-profile-enter") == 1);
  CHECK(profile.rest() == 39);
}

TEST_CASE("inner bridges count as their loop by default", "[pypylog]") {
  const std::string log = kCompiled + enter(100, "Loop 1") +
                          enter(120, "bridge out of Guard 0xa1") + enter(150, "Loop 1") +
                          enter(160, "bridge out of Guard 0xa2") +
                          leave(200, "bridge out of Guard 0xa2");
  const LoopProfile profile = profile_of(log);
  CHECK(ticks_of(profile) == Ticks{{"", 100},
                                   {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 60},
                                   {"bridge out of Guard 0xa2", 40}});
  CHECK(entered(profile, "Loop 1") == 1);  // the jump back is not an entry
  CHECK(entered(profile, "bridge out of Guard 0xa1") == 1);
}

TEST_CASE("inner bridges count separately with count_inner_bridges", "[pypylog]") {
  const std::string log = kCompiled + enter(100, "Loop 1") + enter(120, "bridge 161") +
                          enter(150, "Loop 1") + leave(160, "Loop 1");
  const LoopProfile profile = profile_of(log, {.count_inner_bridges = true});
  CHECK(ticks_of(profile) == Ticks{{"", 100},
                                   {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 30},
                                   {"bridge out of Guard 0xa1", 30}});
  CHECK(entered(profile, "Loop 1") == 2);
}

TEST_CASE("an inner bridge that is entered from the interpreter counts as its loop, too",
          "[pypylog]") {
  const LoopProfile profile = profile_of(kCompiled + enter(100, "bridge out of Guard 0xa1") +
                                         leave(130, "bridge out of Guard 0xa1"));
  CHECK(ticks_of(profile) == Ticks{{"", 100}, {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 30}});
  CHECK(profile.problems().total() == 0);
}

TEST_CASE("a bridge without operations in the log is not treated as inner", "[pypylog]") {
  const LoopProfile profile =
      profile_of(enter(100, "Loop 1") + enter(120, "bridge 161") + leave(150, "bridge 161"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"Loop 1", 20}, {"bridge out of Guard 0xa1", 30}});
}

TEST_CASE("each thread has its own loops, sections and times", "[pypylog]") {
  const std::string log = enter(100, "a", "0# ") + enter(110, "b", "1# ") + leave(150, "a", "0# ") +
                          "1# [160] {gc-minor\n0# [161] {gc-major\n1# [170] gc-minor}\n" +
                          leave(200, "b", "1# ") + "0# [261] gc-major}\n";
  const LoopProfile profile = profile_of(log);
  REQUIRE(profile.threads().size() == 2);
  CHECK(profile.threads()[0].number == 0);
  CHECK(profile.threads()[0].ticks() == 161);
  CHECK(profile.threads()[1].ticks() == 91);
  CHECK(profile.ticks() == 252);
  CHECK(ticks_of(profile) == Ticks{{"", 111 + 1}, {"a", 50}, {"b", 90}});
  CHECK(category(profile, "gc-major") == 100);
  CHECK(category(profile, "gc-minor") == 10);
  CHECK(profile.problems().total() == 0);
}

}  // namespace perfmap::loop_profile_test
