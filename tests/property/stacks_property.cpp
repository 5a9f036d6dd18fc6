// SPDX-License-Identifier: MIT
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::stacks_property {

TEST_CASE("folded stacks equal those counted in a map of lines", "[stacks][property]") {
  const auto seed = GENERATE(range(0u, 100u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };

  // Names that are prefixes of others, and characters near ';' and ' ', break naive sorting.
  const std::vector<std::string> names{"a", "a b", "a b1", "a!", "a<", "b", "1", "a 1", "a 2"};
  test::Stacks stacks;
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < 14; ++i) {
    const FrameFunction function{.name = names[below(names.size())],
                                 .module = i % 2 == 0 ? "/x" : "/y",
                                 .kind = FrameKind::native};
    places.push_back(stacks.place(function, i, 0));
  }
  std::map<std::string, int> expected;
  for (std::size_t sample = below(300); sample > 0; --sample) {
    std::vector<std::uint32_t> stack;
    std::string line = names[below(2)];
    const std::string comm = line;
    for (std::size_t depth = below(4); depth > 0; --depth) {
      stack.insert(stack.begin(), places[below(places.size())]);
      line += ";" + std::string(stacks.table.function_of(stack.front()).name);
    }
    stacks.add(stacks.frames(stack), static_cast<pid_t>(7 + below(2)), 0, comm);
    ++expected[line];
  }
  std::vector<std::string> lines;
  for (const auto& [stack, count] : expected) lines.push_back(stack + " " + std::to_string(count));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  CHECK(stacks.in(StackFormat::folded) == text);

  const auto speedscope = nlohmann::json::parse(stacks.in(StackFormat::speedscope));
  std::size_t samples = 0;
  for (const auto& profile : speedscope["profiles"]) {
    // Samples without frames are idle time.
    for (const auto& stack : profile["samples"]) samples += stack.empty() ? 0 : 1;
  }
  CHECK(samples == stacks.samples.size());
}

}  // namespace perfmap::stacks_property
