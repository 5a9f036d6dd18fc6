// SPDX-License-Identifier: MIT
// Differences of the stacks of two recordings, and how their samples are made comparable.

#include "perfmap/profile/stack_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "support/catch.hpp"
#include "support/stacks.hpp"
#include "support/written.hpp"

namespace perfmap::stack_comparison_test {
namespace {

using Side = StackComparison::Side;
using Change = ComparedFunction::Change;
using Normalize = ComparisonOptions::Normalize;

FrameFunction native(const char* name, const char* module = "/bin/app") {
  return {.name = name, .system_name = name, .module = module, .kind = FrameKind::native};
}
FrameFunction script(const char* name, const char* tier) {
  return {.name = name,
          .system_name = name,
          .module = "/tmp/perf-7.map",
          .tier = tier,
          .kind = FrameKind::jit};
}

/// A recording of one process, with a table of its own.
struct Recorded {
  explicit Recorded(pid_t pid = 7, const std::string& title = "perf.data") : pid_(pid) {
    stacks.profile.title = title;
    report.emplace(stacks.table, stacks.profile, ProfileReport::Options());
  }

  /// The leaf first.
  Recorded& add(const std::vector<FrameFunction>& functions, std::uint64_t count,
                std::uint32_t event = 0, std::uint64_t time = 5) {
    std::vector<std::uint32_t> places;
    for (const FrameFunction& function : functions) {
      places.push_back(stacks.place(function, 1 + places.size(), 0));
    }
    samples.push_back({places, count, event, time});
    visit_one(samples.back(), [&](const StackSample& sample) { report->add(sample, count); });
    return *this;
  }
  template <class Visit>
  void visit_one(const auto& one, Visit visit) const {
    const std::vector<StackFrame> frames = stacks.frames(one.places);
    StackSample sample{.time = one.time, .pid = pid_, .tid = pid_, .period = 1000 * one.count};
    sample.event = one.event;
    sample.comm = "worker";
    sample.process_comm = "app";
    sample.frames = frames;
    visit(sample);
  }
  void add_to(StackComparison& comparison, Side side) const {
    for (const auto& one : samples) {
      visit_one(one, [&](const StackSample& sample) { comparison.add(side, sample, one.count); });
    }
  }

  struct Counted {
    std::vector<std::uint32_t> places;
    std::uint64_t count;
    std::uint32_t event;
    std::uint64_t time;
  };
  test::Stacks stacks;
  std::optional<ProfileReport> report;
  std::vector<Counted> samples;

 private:
  pid_t pid_;
};

Normalization normalization_of(const Recorded& before, const Recorded& after,
                               const ComparisonOptions& options = {}) {
  const auto found = normalize_reports(*before.report, *after.report, options);
  REQUIRE(found);
  return *found;
}

std::string compared(const Recorded& before, const Recorded& after, StackFormat format,
                     const ComparisonOptions& options = {}) {
  StackComparison comparison(before.stacks.table, before.stacks.profile, after.stacks.table,
                             after.stacks.profile);
  before.add_to(comparison, Side::before);
  after.add_to(comparison, Side::after);
  return test::written([&](OutputFile& out) {
    const Normalization normalization = normalization_of(before, after, options);
    REQUIRE(comparison.write(format, normalization, "perfmap", out));
  });
}

std::vector<nlohmann::json> lines_of(const std::string& jsonl) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(jsonl);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("stacks of two recordings are equal by their functions", "[report]") {
  Recorded before(7), after(9);
  before.add({native("f", "/old/app"), native("main", "/old/app")}, 30)
      .add({native("gone"), native("main")}, 10);
  after.add({native("f", "/new/app"), native("main", "/new/app")}, 60)
      .add({native("came"), native("main")}, 20);
  CHECK(compared(before, after, StackFormat::folded) ==
        "worker;main;came 0 20\n"
        "worker;main;f 60 60\n"
        "worker;main;gone 20 0\n");
}

TEST_CASE("tiers, directories and lines of script functions do not make stacks differ",
          "[report]") {
  Recorded before, after;
  before.add({script("JS:~parse /old/app.js:1:15", "interpreted")}, 10)
      .add({script("JS:*parse /old/app.js:1:15", "turbofan")}, 20);
  after.add({script("JS:*parse /new/app.js:7:15", "turbofan")}, 30);
  const auto lines = lines_of(compared(before, after, StackFormat::jsonl));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["old_samples"] == 30);
  CHECK(lines[0]["new_samples"] == 30);
  CHECK(lines[0]["change"] == "same");
  CHECK(lines[0]["frames"][0]["name"] == "parse app.js");
}

TEST_CASE("functions of a script with the same name are told apart in stacks", "[report]") {
  Recorded before, after;
  before.add({script("JS:*run /old/app.js:2:3", "turbofan")}, 30)
      .add({script("JS:*run /old/app.js:3:5", "turbofan")}, 20)
      .add({script("JS:*odd /old/app.js:7:1", "turbofan")}, 20)
      .add({script("JS:*odd /old/app.js:8:1", "turbofan")}, 20);
  after.add({script("JS:*run /new/app.js:3:3", "turbofan")}, 40)
      .add({script("JS:*run /new/app.js:4:5", "turbofan")}, 50)
      .add({script("JS:*odd /new/app.js:9:1", "turbofan")}, 90);
  CHECK(compared(before, after, StackFormat::folded) ==
        "worker;odd app.js (2 functions)_[j] 80 90\n"
        "worker;run app.js:3:3_[j] 60 40\n"
        "worker;run app.js:4:5_[j] 40 50\n");
}

TEST_CASE("only samples of the compared event are written", "[report]") {
  Recorded before, after;
  before.add({native("f")}, 10).add({native("f")}, 500, 1);
  after.add({native("f")}, 20).add({native("g")}, 700, 1);
  const auto lines = lines_of(compared(before, after, StackFormat::jsonl));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["old_samples"] == 10);
  CHECK(lines[0]["new_samples"] == 20);
}

TEST_CASE("a folded difference leaves out what rounds to two zeros", "[report]") {
  Recorded before, after;
  before.add({native("f")}, 1000).add({native("rare")}, 1);
  after.add({native("f")}, 100);
  CHECK(compared(before, after, StackFormat::folded) == "worker;f 100 100\n");
}

TEST_CASE("formats without a place for two counts are refused", "[report]") {
  const auto format =
      GENERATE(StackFormat::pprof, StackFormat::speedscope, StackFormat::perf_script);
  Recorded one;
  one.add({native("f")}, 1);
  CHECK_FALSE(StackComparison::supports(format));
  StackComparison comparison(one.stacks.table, one.stacks.profile, one.stacks.table,
                             one.stacks.profile);
  one.add_to(comparison, Side::before);
  one.add_to(comparison, Side::after);
  test::written([&](OutputFile& out) {
    CHECK_FALSE(comparison.write(format, normalization_of(one, one), "perfmap", out));
  });
}

TEST_CASE("samples are normalised as asked", "[report]") {
  Recorded before, after;
  before.add({native("f"), native("work")}, 100).add({native("g")}, 100, 0, 1'000'000'005);
  after.add({native("f"), native("work")}, 300).add({native("g")}, 100, 0, 2'000'000'005);
  struct Case {
    ComparisonOptions options;
    double factor;
  };
  const auto c = GENERATE(values<Case>({{{Normalize::samples}, 0.5},
                                        {{Normalize::none}, 1},
                                        {{Normalize::time}, 0.5},
                                        {{Normalize::function, "work"}, 1.0 / 3}}));
  const Normalization found = normalization_of(before, after, c.options);
  CHECK(std::abs(found.factor - c.factor) < 1e-9);
  CHECK(found.change_ppm(100, 100) == std::llround((100 * c.factor - 100) / 200 * 1e6));
}

TEST_CASE("recordings that cannot be normalised name what is missing", "[report]") {
  Recorded one, timeless;
  Recorded none(7, "none.data");
  one.add({native("f")}, 10).add({native("f")}, 10, 0, 1000);
  timeless.add({native("f")}, 10);
  const auto why = [](const Recorded& before, const Recorded& after,
                      const ComparisonOptions& options) {
    const auto found = normalize_reports(*before.report, *after.report, options);
    return found ? "" : found.error().message();
  };
  CHECK(why(none, one, {}) == "none.data has no samples that pass the filters");
  CHECK(why(one, none, {}) == "none.data has no samples that pass the filters");
  CHECK(why(one, timeless, {Normalize::time}) == "perf.data has no times");
  CHECK(why(one, one, {Normalize::function, "other"}) == "perf.data has no samples in other");
}

TEST_CASE("a stack changes by the rule of a comparison of reports", "[report]") {
  std::mt19937 random(3);
  std::uniform_int_distribution<std::uint64_t> any(1, 400);
  const auto how = GENERATE(Normalize::samples, Normalize::none, Normalize::function);
  const char* const names[] = {"a", "b", "c", "d", "e", "f"};
  std::size_t changed = 0;
  for (int i = 0; i < 50; ++i) {
    Recorded before, after;
    for (const char* const name : names) {
      const std::uint64_t count = any(random);
      before.add({native(name)}, count);
      after.add({native(name)}, any(random) < 200 ? count : any(random));
    }
    const ComparisonOptions options{.normalize = how, .function = "c"};
    const ProfileReport* const baselines[] = {&*before.report};
    const ProfileReport* const reports[] = {&*after.report};
    const auto found = compare_reports(baselines, reports, options);
    REQUIRE(found);
    for (const auto& line : lines_of(compared(before, after, StackFormat::jsonl, options))) {
      const auto name = line["frames"][0]["name"].get<std::string>();
      const auto same = std::ranges::find(found->functions, name, &ComparedFunction::name);
      const Change expected = same == found->functions.end() ? Change::same : same->change;
      CAPTURE(line.dump());
      CHECK(line["change"] == to_string(expected));
      changed += expected == Change::same ? 0 : 1;
    }
  }
  CHECK(changed > 20);
}

}  // namespace perfmap::stack_comparison_test
