// SPDX-License-Identifier: MIT
#include <set>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::wild_maps_test {
namespace {

using Rules = std::set<std::string>;

/// The rules with findings in a real runtime's map, except those about its file.
Rules rules_in(const std::string& name) {
  const Result<Input> input = Input::open(test::tests_dir("/wild/" + name));
  REQUIRE(input);
  Diagnostics problems(1);
  for (const Rule* rule : rule::all()) {
    if (rule->id >= "PM060" && rule->id <= "PM070") problems.ignore(*rule);
  }
  lint(Map(*input), problems);
  Rules rules;
  for (const Diagnostic& one : problems.items()) rules.insert(std::string(one.rule->id));
  return rules;
}

}  // namespace

TEST_CASE("heuristic rules have no false positives in real maps of Node and HotSpot",
          "[lint][wild]") {
  CHECK(rules_in("node/perf-603.map") == Rules{"PM102", "PM113"});
  const Rules hotspot{"PM004", "PM013", "PM033", "PM113"};
  CHECK(rules_in("java/perf-5340.map") == hotspot);
  CHECK(rules_in("java/perf-5404.map") == hotspot);
}

}  // namespace perfmap::wild_maps_test
