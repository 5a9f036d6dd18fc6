// SPDX-License-Identifier: MIT
#include <string>

#include "perfmap/pypylog.hpp"
#include "perfmap/text.hpp"
#include "support/catch.hpp"

namespace perfmap::loop_report_test {
namespace {

/// Two loops of one function and one without a location; Loop 2 takes the most time.
constexpr const char* kLog =
    "[100] {jit-profile-enter\n"
    "Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER)\n"
    "[101] jit-profile-enter}\n"
    "[200] {jit-profile-enter\n"
    "Loop 2 (f;/srv/t.py:3-7~#30 FOR_ITER)\n"
    "[201] jit-profile-enter}\n"
    "[500] {jit-profile-enter\n"
    "loop (odd)\n"
    "[501] jit-profile-enter}\n"
    "[550] {jit-profile-exit\n"
    "loop (odd)\n"
    "[551] jit-profile-exit}\n";

LoopProfile profile_of(std::string_view log) {
  LoopProfile profile({});
  profile.add(log);
  profile.finish();
  return profile;
}

std::vector<std::string> rows_of(const LoopProfile& profile, LoopKey key,
                                 const std::optional<SampledLoops>& samples = {}) {
  std::vector<std::string> rows;
  for (const LoopRow& row : loop_rows(profile, key, samples)) {
    const CompiledLoop& loop = profile.loops().all()[row.loop];
    rows.push_back(std::string(short_name(loop)) + " " + std::to_string(row.loops) + " " +
                   (row.ticks ? std::to_string(*row.ticks) : "-"));
  }
  return rows;
}

}  // namespace

TEST_CASE("loops are ordered by time, and their short names have no location", "[pypylog]") {
  CHECK(rows_of(profile_of(kLog), LoopKey::loop) ==
        std::vector<std::string>{"Loop 2 1 300", "Loop 1 1 100", "loop (odd) 1 50"});
}

TEST_CASE("the row of a function is the sum of its loops", "[pypylog]") {
  const LoopProfile profile = profile_of(kLog);
  CHECK(rows_of(profile, LoopKey::function) ==
        std::vector<std::string>{"Loop 1 2 400", "loop (odd) 1 50"});
  const LoopRow all = sum_of_rows(loop_rows(profile, LoopKey::loop));
  CHECK(all.loops == 3);
  CHECK(all.ticks == 450U);
  CHECK(all.entered == 3U);
  CHECK_FALSE(all.iterations);
}

TEST_CASE("loops of functions with long names in one file are grouped by function", "[pypylog]") {
  // Longer than what std::string holds in itself.
  const LoopProfile profile = profile_of(
      "[100] {jit-profile-enter\n"
      "Loop 1 (iterates_over_the_rows;/srv/t.py:3-4~#8 FOR_ITER)\n"
      "[101] jit-profile-enter}\n"
      "[200] {jit-profile-enter\n"
      "Loop 2 (iterates_over_the_cols;/srv/t.py:3-4~#8 FOR_ITER)\n"
      "[201] jit-profile-enter}\n"
      "[500] {jit-profile-enter\n"
      "Loop 3 (iterates_over_the_rows;/srv/t.py:3-7~#30 FOR_ITER)\n"
      "[501] jit-profile-enter}\n"
      "[550] {jit-profile-exit\n"
      "Loop 3 (iterates_over_the_rows;/srv/t.py:3-7~#30 FOR_ITER)\n"
      "[551] jit-profile-exit}\n");
  CHECK(rows_of(profile, LoopKey::function) ==
        std::vector<std::string>{"Loop 2 1 300", "Loop 1 2 150"});
  CHECK(rows_of(profile, LoopKey::file) == std::vector<std::string>{"Loop 1 3 450"});
}

TEST_CASE("rows are ordered by samples if there are no times, and by counts if there are neither",
          "[pypylog]") {
  const LoopProfile profile = profile_of(
      "[a0] {jit-backend-counts\n"
      "entry 1:5\n"
      "entry 2:7\n"
      "[a1] jit-backend-counts}\n");
  CHECK(rows_of(profile, LoopKey::loop) == std::vector<std::string>{"Loop 2 1 -", "Loop 1 1 -"});
  const std::uint64_t samples[] = {3, 1};
  CHECK(rows_of(profile, LoopKey::loop, SampledLoops{samples, 9}) ==
        std::vector<std::string>{"Loop 1 1 -", "Loop 2 1 -"});
}

TEST_CASE("a guard has failed as often as its bridge was entered", "[pypylog]") {
  const LoopProfile profile = profile_of(
      "[a0] {jit-log-opt-loop\n"
      "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 3 ops\n"
      "+1: guard_true(i1, descr=<Guard0x10>) []\n"
      "+2: guard_false(i1, descr=<Guard0x20>) []\n"
      "+3: guard_value(i1, descr=<Guard0x30>) []\n"
      "[a1] jit-log-opt-loop}\n"
      "[a2] {jit-backend-counts\n"
      "entry 1:9\n"
      "bridge 16:2\n"
      "bridge 32:5\n"
      "[a3] jit-backend-counts}\n");
  const std::vector<FailedGuard> failed = failed_guards(profile, 0);
  REQUIRE(failed.size() == 2);
  CHECK(profile.loops().all()[0].guards[failed[0].guard].operation == "guard_false");
  CHECK(failed[0].failures == 5U);
  CHECK(failed[1].failures == 2U);
}

TEST_CASE("a bridge that is known only from an event counts as a failure of its guard",
          "[pypylog]") {
  const LoopProfile profile = profile_of(
      "[a0] {jit-log-opt-loop\n"
      "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 1 ops\n"
      "+1: guard_true(i1, descr=<Guard0x10>) []\n"
      "[a1] jit-log-opt-loop}\n"
      "[a2] {jit-profile-enter\n"
      "bridge out of Guard 0x10\n"
      "[a3] jit-profile-enter}\n");
  REQUIRE(failed_guards(profile, 0).size() == 1);
  CHECK(failed_guards(profile, 0)[0].failures == 1U);
  CHECK(profile.loops().all()[1].loop == 0);
}

TEST_CASE("scaled_ratio() is exact or saturates", "[pypylog]") {
  CHECK(scaled_ratio(1, 3, 3) == 333);
  CHECK(scaled_ratio(7, 2, 1) == 35);
  CHECK(scaled_ratio(5, 0, 3) == 0);
  CHECK(scaled_ratio(UINT64_MAX, UINT64_MAX, 6) == 1'000'000);
  CHECK(scaled_ratio(UINT64_MAX - 1, UINT64_MAX, 3) == 999);
  CHECK(scaled_ratio(UINT64_MAX / 2, UINT64_MAX, 3) == 499);
  CHECK(scaled_ratio(UINT64_MAX, 1, 1) == UINT64_MAX);
}

}  // namespace perfmap::loop_report_test
