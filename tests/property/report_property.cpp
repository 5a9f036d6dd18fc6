// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perfmap/profile/report.hpp"
#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::report_property {
namespace {

using Names = std::vector<std::string>;  // of a stack, leaf first

struct Counted {
  Names names;
  std::uint32_t event;
  std::uint64_t count;
  std::uint64_t period;
};

/// Functions and places of them; a function has several places, and JIT functions have tiers.
struct World {
  explicit World(std::mt19937& random) {
    for (const char* name : {"a", "ab", "b", "main"}) {
      const FrameFunction function{.name = name, .module = "/bin/x", .kind = FrameKind::native};
      for (Address at = 0; at < 1 + random() % 3; ++at) add(name, function, at);
    }
    for (const FrameFunction& tier : {test::kFast, test::kSlow}) add("foo /a.js:1:13", tier, 9);
  }
  void add(const std::string& name, const FrameFunction& function, Address at) {
    places.push_back(stacks.place(function, at, 0));
    names.push_back(name);
  }

  test::Stacks stacks;
  std::vector<std::uint32_t> places;
  Names names;  // by place
};

std::vector<Counted> fill(World& world, std::mt19937& random, ProfileReport& report) {
  std::vector<Counted> samples;
  for (std::size_t left = 1 + random() % 200; left > 0; --left) {
    std::vector<std::uint32_t> places;
    Counted counted{{}, static_cast<std::uint32_t>(random() % 2), 1 + random() % 3, random() % 9};
    for (std::size_t depth = random() % 7; depth > 0; --depth) {
      const std::size_t place = random() % world.places.size();
      places.push_back(world.places[place]);
      counted.names.push_back(world.names[place]);
    }
    const std::vector<StackFrame> frames = world.stacks.frames(places);
    StackSample sample{.pid = 7, .tid = 7, .period = counted.period, .event = counted.event};
    sample.frames = frames;
    report.add(sample, counted.count);
    samples.push_back(std::move(counted));
  }
  return samples;
}

using Pair = std::pair<std::uint64_t, std::uint64_t>;  // samples and period
void add(Pair& pair, const Counted& sample) {
  pair.first += sample.count;
  pair.second += sample.period;
}
Pair pair_of(const ReportCounts& counts) { return {counts.samples, counts.period}; }

/// Totals and selfs by path: the names from the root of a tree to a node.
struct Tree {
  std::map<Names, Pair> totals;
  std::map<Names, Pair> selfs;
  friend bool operator==(const Tree&, const Tree&) = default;
};

void add_path(Tree& tree, const Names& path, const Counted& sample) {
  Names beginning;
  for (const std::string& name : path) {
    beginning.push_back(name);
    add(tree.totals[beginning], sample);
  }
  add(tree.selfs[path], sample);
}

Tree expected_tree(const std::vector<Counted>& samples, std::uint32_t event,
                   const std::string& name, bool is_callers) {
  Tree tree;
  for (const Counted& sample : samples) {
    if (sample.event != event || (sample.count == 0 && sample.period == 0)) continue;
    const auto outermost = std::find(sample.names.rbegin(), sample.names.rend(), name);
    if (outermost == sample.names.rend()) continue;
    const auto begin = std::prev(outermost.base());  // in the order of frames
    const Names path =
        is_callers ? Names(begin, sample.names.end()) : Names(outermost, sample.names.rend());
    add_path(tree, path, sample);
  }
  return tree;
}

Tree found_tree(const std::vector<ReportTreeNode>& nodes) {
  Tree tree;
  std::vector<Names> paths;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    REQUIRE((i == 0 || nodes[i].parent < i));
    REQUIRE(nodes[i].depth == (i == 0 ? 0 : nodes[nodes[i].parent].depth + 1));
    Names path = i == 0 ? Names() : paths[nodes[i].parent];
    path.emplace_back(nodes[i].name);
    tree.totals[path] = pair_of(nodes[i].total);
    if (nodes[i].self != ReportCounts()) tree.selfs[path] = pair_of(nodes[i].self);
    paths.push_back(std::move(path));
  }
  return tree;
}

}  // namespace

TEST_CASE("a report equals counts made sample by sample", "[report][property]") {
  const auto seed = GENERATE(range(0u, 100u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  World world(random);
  ProfileReport report(world.stacks.table, world.stacks.profile, {.keeps_stacks = true});
  const std::vector<Counted> samples = fill(world, random, report);

  for (const std::uint32_t event : {0u, 1u}) {
    std::map<std::string, Pair> selfs, totals;
    Pair all;
    for (const Counted& sample : samples) {
      if (sample.event != event) continue;
      add(all, sample);
      if (!sample.names.empty()) add(selfs[sample.names.front()], sample);
      for (const auto& name : std::set(sample.names.begin(), sample.names.end())) {
        add(totals[name], sample);
      }
    }
    for (const ProfileReport::Event& found : report.events()) {
      if (found.number == event) CHECK(pair_of(found.total) == all);
    }
    const std::vector<ReportRow> rows = report.rows(event);
    CHECK(rows.size() == totals.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string name(rows[i].name);
      CHECK(pair_of(rows[i].self) == selfs[name]);
      CHECK(pair_of(rows[i].total) == totals[name]);
      if (i > 0) CHECK(rows[i - 1].self.samples >= rows[i].self.samples);
      const std::vector<std::uint32_t> number = {rows[i].number};
      CHECK(report.find(name) == number);
      CHECK(found_tree(report.callers(event, number)) == expected_tree(samples, event, name, true));
      CHECK(found_tree(report.callees(event, number)) ==
            expected_tree(samples, event, name, false));
    }
  }
}

}  // namespace perfmap::report_property
