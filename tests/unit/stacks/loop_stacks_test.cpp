// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <string>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

namespace perfmap::loop_stacks_test {
namespace {

constexpr const char* kLog =
    "[100] {jit-profile-enter\n"
    "loop;1\n"
    "[101] jit-profile-enter}\n"
    "[150] {gc-minor\n"
    "[170] gc-minor}\n"
    "[200] {jit-profile-exit\n"
    "loop;1\n"
    "[201] jit-profile-exit}\n";

LoopProfile read(std::string_view log, LoopProfile::Options options) {
  LoopProfile profile(std::move(options));
  profile.add(log);
  profile.finish();
  return profile;
}

std::string stacks_in(StackFormat format, std::string_view log,
                      std::uint64_t max_bytes = UINT64_MAX) {
  const LoopProfile profile = read(log, {});
  LoopStacks stacks(profile, max_bytes);
  StackProfile about;
  about.events.push_back({.name = "ticks", .is_weighted = true});
  return test::written([&](OutputFile& out) {
    const auto writer = StackWriter::make(format, out, stacks.table(), about, {});
    LoopProfile::Options again;
    again.base = profile.base();
    again.visit = [&](const LoopSpan& span) { stacks.add(span, *writer); };
    read(log, std::move(again));
    REQUIRE(writer->finish());
  });
}

}  // namespace

TEST_CASE("spans become stacks of the loop and its open sections, weighted by ticks", "[pypylog]") {
  CHECK(stacks_in(StackFormat::folded, kLog) ==
        "main;[outside];jit-profile-exit 1\n"
        "main;loop:1_[j] 79\n"
        "main;loop:1_[j];gc-minor 20\n"
        "main;loop:1_[j];jit-profile-enter 1\n");
}

TEST_CASE("stacks that exceed the limit are left out, and their ticks are kept", "[pypylog]") {
  // The five stacks of the log need 17 + 8, 8, 8 + 8, 8 and 16 + 9 bytes.
  CHECK(stacks_in(StackFormat::folded, kLog, 82) == stacks_in(StackFormat::folded, kLog));
  CHECK(stacks_in(StackFormat::folded, kLog, 56) ==
        "main;[left out] 31\n"
        "main;loop:1_[j] 49\n"
        "main;loop:1_[j];gc-minor 20\n"
        "main;loop:1_[j];jit-profile-enter 1\n");
  CHECK(stacks_in(StackFormat::folded, kLog, 24) == "main;[left out] 101\n");
  std::string deep;
  for (int i = 0; i < 4000; ++i) deep += "[" + std::to_string(i) + "] {a\n";
  for (int i = 0; i < 1000; ++i) {
    deep +=
        "[" + std::to_string(4000 + 2 * i) + "] {b\n[" + std::to_string(4001 + 2 * i) + "] b}\n";
  }
  CHECK(stacks_in(StackFormat::speedscope, deep, 100'000).size() < 300'000);
}

TEST_CASE("in a log without loop events, time belongs to sections or to none", "[pypylog]") {
  CHECK(stacks_in(StackFormat::folded, "3# [10] {gc-minor\n3# [15] gc-minor}\n3# [20] {a\n") ==
        "thread 3;[not in any section] 5\n"
        "thread 3;gc-minor 5\n");
}

TEST_CASE("ticks are weights without a unit", "[pypylog]") {
  const auto json = nlohmann::json::parse(stacks_in(StackFormat::speedscope, kLog));
  const auto& profile = json["profiles"][0];
  CHECK(profile["name"] == "main");
  CHECK(profile["unit"] == "none");
  CHECK(profile["endValue"] == 101);
  CHECK(profile["weights"] == std::vector<int>{1, 49, 20, 30, 1});
}

TEST_CASE("samples outside loops are included", "[pypylog]") {
  const LoopProfile profile = read(kLog, {});
  const std::uint64_t counts[] = {4};
  FrameTable table;
  StackProfile about;
  about.events.push_back({.name = "samples", .is_weighted = true});
  CHECK(test::written([&](OutputFile& out) {
          const auto writer = StackWriter::make(StackFormat::folded, out, table, about, {});
          add_sampled_loops(profile, {counts, 7}, "pypy", table, *writer);
          REQUIRE(writer->finish());
        }) == "pypy;[outside] 3\npypy;loop:1_[j] 4\n");
}

}  // namespace perfmap::loop_stacks_test
