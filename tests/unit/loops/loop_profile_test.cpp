#include "perfmap/loop_profile.hpp"

#include <map>
#include <string>

#include "perfmap/input.hpp"
#include "perfmap/rules.hpp"
#include "support/catch.hpp"

namespace perfmap {
namespace {

using Options = LoopProfile::Options;

/// "enter 100 loop1" as PyPy's documentation sketches it.
std::string event(const std::string& kind, unsigned tick, const std::string& name,
                  const std::string& prefix = "") {
  const std::string category = "jit-profile-" + kind;
  return prefix + "[" + std::to_string(tick) + "] {" + category + "\n" + prefix + name + "\n" +
         prefix + "[" + std::to_string(tick + 1) + "] " + category + "}\n";
}
std::string enter(unsigned tick, const std::string& name, const std::string& prefix = "") {
  return event("enter", tick, name, prefix);
}
std::string leave(unsigned tick, const std::string& name, const std::string& prefix = "") {
  return event("exit", tick, name, prefix);
}

const std::string kSketch =
    "[100] {jit-profile-enter\n"
    "loop1      # e.g. an entry bridge\n"
    "[101] jit-profile-enter}\n"
    "[200] {jit-profile-enter\n"
    "loop0      # JUMP from loop1 to loop0\n"
    "[201] jit-profile-enter}\n"
    "[500] {jit-profile-exit\n"
    "loop0      # e.g. because of a failing guard\n"
    "[501] jit-profile-exit}\n";

/// Two loops, a bridge that jumps back to the loop of its guard, and one that goes to the other.
const std::string kCompiled =
    "[1] {jit-log-opt-loop\n"
    "# Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER) : loop with 4 ops\n"
    "+10: label(p0, descr=TargetToken(111))\n"
    "+20: guard_true(i1, descr=<Guard0xa1>) [p0]\n"
    "+30: guard_false(i2, descr=<Guard0xa2>) [p0]\n"
    "+40: jump(p0, descr=TargetToken(111))\n"
    "[2] jit-log-opt-loop}\n"
    "[3] {jit-log-opt-loop\n"
    "# Loop 2 (g;/tmp/t.py:20-21~#2 FOR_ITER) : loop with 1 ops\n"
    "+10: label(p0, descr=TargetToken(222))\n"
    "+20: jump(p0, descr=TargetToken(222))\n"
    "[4] jit-log-opt-loop}\n"
    "[5] {jit-log-opt-bridge\n"
    "# bridge out of Guard 0xa1 with 1 ops\n"
    "+10: jump(p0, descr=TargetToken(111))\n"
    "[6] jit-log-opt-bridge}\n"
    "[7] {jit-log-opt-bridge\n"
    "# bridge out of Guard 0xa2 with 1 ops\n"
    "+10: jump(p0, descr=TargetToken(222))\n"
    "[8] jit-log-opt-bridge}\n";

LoopProfile profile_of(const std::string& log, Options options = {}) {
  LoopProfile profile(std::move(options));
  profile.add(log);
  profile.finish();
  return profile;
}

/// Ticks by a loop's name, and "" for the time outside; loops without time are left out.
std::map<std::string, std::uint64_t> ticks_of(const LoopProfile& profile) {
  std::map<std::string, std::uint64_t> ticks{{"", profile.outside()}};
  for (std::size_t i = 0; i < profile.times().size(); ++i) {
    if (profile.times()[i].ticks != 0)
      ticks[profile.loops().all()[i].name] += profile.times()[i].ticks;
  }
  return ticks;
}

std::uint64_t entered(const LoopProfile& profile, const std::string& name) {
  return profile.times()[profile.loops().find(name)].entered;
}

std::uint64_t category(const LoopProfile& profile, const std::string& name) {
  for (const LoopProfile::Category& one : profile.categories()) {
    if (one.name == name) return one.ticks;
  }
  FAIL("no category " << name);
  return 0;
}

using Ticks = std::map<std::string, std::uint64_t>;

}  // namespace

TEST_CASE(
    "the sketch in PyPy's documentation gives 100 ticks in the entry bridge and 300 in the loop",
    "[pypylog]") {
  const LoopProfile profile = profile_of(kSketch);
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"loop0", 300}, {"loop1", 100}});
  CHECK(profile.base() == TickBase::dec);
  CHECK(profile.ticks() == 401);
  CHECK(profile.has_events());
}

TEST_CASE("times are hexadecimal as soon as one holds a letter, and decimal if none does",
          "[pypylog]") {
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

TEST_CASE("a loop is left when another is entered", "[pypylog]") {
  const LoopProfile profile =
      profile_of(enter(10, "a") + enter(30, "b") + enter(70, "a") + leave(75, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 25}, {"b", 40}});
  CHECK(entered(profile, "a") == 2);
}

TEST_CASE("a loop that is never left has the time up to the log's end", "[pypylog]") {
  const LoopProfile profile = profile_of(enter(10, "a") + "[90] {gc-minor\n[95] gc-minor}\n");
  CHECK(ticks_of(profile) == Ticks{{"", 0}, {"a", 85}});
}

TEST_CASE("a loop that is left without being entered has no time, and is reported", "[pypylog]") {
  const LoopProfile profile = profile_of(leave(10, "a") + enter(20, "b") + leave(50, "c"));
  CHECK(ticks_of(profile) == Ticks{{"", 11}, {"b", 30}});
  CHECK(profile.problems().count_of(rule::kOtherLoop) == 2);
}

TEST_CASE("time in the collector is the loop's, and the category's in its own account",
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

TEST_CASE("inner bridges are ignored: their time is their loop's", "[pypylog]") {
  const std::string log = kCompiled + enter(100, "Loop 1") +
                          enter(120, "bridge out of Guard 0xa1") + enter(150, "Loop 1") +
                          enter(160, "bridge out of Guard 0xa2") +
                          leave(200, "bridge out of Guard 0xa2");
  const LoopProfile profile = profile_of(log);
  CHECK(ticks_of(profile) == Ticks{{"", 100},
                                   {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 60},
                                   {"bridge out of Guard 0xa2", 40}});
  CHECK(entered(profile, "Loop 1") == 1);  // the jump back is no entry
  CHECK(entered(profile, "bridge out of Guard 0xa1") == 1);
}

TEST_CASE("inner bridges count on their own where that is asked for", "[pypylog]") {
  const std::string log = kCompiled + enter(100, "Loop 1") + enter(120, "bridge 161") +
                          enter(150, "Loop 1") + leave(160, "Loop 1");
  const LoopProfile profile = profile_of(log, {.count_inner_bridges = true});
  CHECK(ticks_of(profile) == Ticks{{"", 100},
                                   {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 30},
                                   {"bridge out of Guard 0xa1", 30}});
  CHECK(entered(profile, "Loop 1") == 2);
}

TEST_CASE("an inner bridge that is entered from the interpreter is its loop, too", "[pypylog]") {
  const LoopProfile profile = profile_of(kCompiled + enter(100, "bridge out of Guard 0xa1") +
                                         leave(130, "bridge out of Guard 0xa1"));
  CHECK(ticks_of(profile) == Ticks{{"", 100}, {"Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", 30}});
  CHECK(profile.problems().total() == 0);
}

TEST_CASE("a bridge of which the log has no operations is not taken for an inner one",
          "[pypylog]") {
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

TEST_CASE("a log that begins in the middle of a section says so and counts from there",
          "[pypylog]") {
  const LoopProfile profile = profile_of("loop0\n[20] jit-profile-enter}\n[30] jit-backend}\n" +
                                         enter(40, "a") + leave(60, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 21}, {"a", 20}});
  CHECK(profile.problems().count_of(rule::kUnopenedSection) == 2);
  CHECK(profile.problems().items()[0].where.line == 2);
  CHECK(profile.ticks() == 41);
}

TEST_CASE("a log that ends in the middle of a section keeps what is there", "[pypylog]") {
  const LoopProfile open =
      profile_of(enter(10, "a") + "[50] {gc-minor\n[60] {gc-walk\n[70] {gc-x\n");
  CHECK(ticks_of(open) == Ticks{{"", 0}, {"a", 60}});
  CHECK(category(open, "gc-minor") == 10);
  CHECK(category(open, "gc-walk") == 10);
  CHECK(open.problems().count_of(rule::kUnendedSection) == 3);

  SECTION("a line that is not finished is not there") {
    CHECK(profile_of(enter(10, "a") + "[50] {gc-mi").ticks() == 1);
    CHECK(profile_of(enter(10, "a") + "[50] {gc-minor\n[60] gc-minor}").ticks() == 50);
  }
  SECTION("an event without its name leaves the loop before") {
    const LoopProfile cut = profile_of(enter(10, "a") + "[50] {jit-profile-enter\n[70] {b\n");
    CHECK(ticks_of(cut) == Ticks{{"", 20}, {"a", 40}});
    CHECK(cut.problems().count_of(rule::kUnnamedLoop) == 1);
  }
}

TEST_CASE("a time that runs backwards counts 0 and is reported", "[pypylog]") {
  const LoopProfile profile =
      profile_of(enter(100, "a") + "[80] {gc-minor\n[90] gc-minor}\n" + leave(200, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 100}});
  CHECK(category(profile, "gc-minor") == 0);
  CHECK(profile.problems().count_of(rule::kTickRunsBack) == 2);
  CHECK(profile.problems().items()[0].where.line == 4);
}

TEST_CASE("a section that is closed by the one around it ends there", "[pypylog]") {
  const LoopProfile profile = profile_of("[10] {a\n[20] {b\n[30] {c\n[50] a}\n[60] {a\n[61] a}\n");
  CHECK(category(profile, "a") == 11);
  CHECK(category(profile, "b") == 10);
  CHECK(category(profile, "c") == 20);
  CHECK(profile.rest() == 10);
  CHECK(profile.problems().count_of(rule::kUnendedSection) == 2);
}

TEST_CASE("time before and after what is asked for counts nowhere", "[pypylog]") {
  const Options options{.from = PypylogTick{0x150, 150}, .to = PypylogTick{0x300, 300}};
  const LoopProfile profile = profile_of(kSketch, options);
  CHECK(ticks_of(profile) == Ticks{{"", 0}, {"loop1", 50}, {"loop0", 100}});
  CHECK(profile.ticks() == 150);
  CHECK(entered(profile, "loop1") == 0);
  CHECK(entered(profile, "loop0") == 1);
}

TEST_CASE("torn and interleaved lines cost themselves alone", "[pypylog]") {
  const std::string torn = "[1[20] {gc-minor\n[25] {a b\nx[26] {c\n[] {d\n";
  const LoopProfile profile = profile_of(enter(10, "a") + torn + leave(60, "a"));
  CHECK(ticks_of(profile) == Ticks{{"", 1}, {"a", 50}});
  CHECK(profile.categories().size() == 2);
}

TEST_CASE("colours and carriage returns of a terminal are no part of anything", "[pypylog]") {
  const std::string log =
      "\x1b[1m\x1b[31m[10] {jit-profile-enter\r\n\x1b[0mloop0\r\n"
      "\x1b[31m[11] jit-profile-enter}\r\n\x1b[0m[30] {jit-profile-exit\x1b[0m\r\nloop0\r\n"
      "[31] jit-profile-exit}\r\n";
  CHECK(ticks_of(profile_of(log)) == Ticks{{"", 1}, {"loop0", 20}});
}

TEST_CASE("a log of many pieces is read once, and each line by what it is", "[pypylog]") {
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

TEST_CASE("hostile nesting and names cost bounded memory and no time", "[pypylog]") {
  std::string deep;
  for (unsigned i = 0; i < 10000; ++i) deep += "[" + std::to_string(i) + "] {a\n";
  const LoopProfile nested = profile_of(deep);
  CHECK(nested.ticks() == 9999);
  CHECK(category(nested, "a") == 9999);
  CHECK(nested.problems().count_of(rule::kTooManySections) == 10000 - 4096);

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

}  // namespace perfmap
