// SPDX-License-Identifier: MIT
#include "unwind/rule_cache.hpp"

#include <deque>

#include "support/unwind_world.hpp"

namespace perfmap::rule_cache_test {

using test::UnwindWorld;

TEST_CASE("the number of rows for general rules is limited", "[unwind][hostile]") {
  using namespace std::string_literals;
  constexpr std::uint32_t kMaxRows = 20'000;
  test::CfiBytes frames;
  frames.fde(0x1000, 0x1000, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\0"s);  // CFA = [rbp - 8]
  std::deque<UnwindWorld> worlds;
  while (worlds.size() < 6) worlds.emplace_back(UnwindWorld::Shape{.frames = frames.text()});
  RuleCache rules;
  std::uint32_t max = 0;
  for (const UnwindWorld& world : worlds) {
    for (Address at = 0; at < 0x1000; ++at) {
      const UnwindRule& rule = rules.find<X86_64>(world.space().state(), UnwindWorld::kCode + at);
      REQUIRE(rule.kind == UnwindRule::Kind::general);
      REQUIRE(rules.row(rule).cfa == CfiRules::Cfa::expression);
      max = std::max(max, rule.row + 1);
    }
  }
  CHECK(max == kMaxRows);
  CHECK(rules.made() == worlds.size() * 0x1000);
}

}  // namespace perfmap::rule_cache_test
