// SPDX-License-Identifier: MIT
#include "perfmap/profile/merged_stacks.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "perfmap/profile/report.hpp"
#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::merged_stacks_test {
namespace {

using nlohmann::json;
using test::Stacks;

/// Adds the samples of a recording. `pid` is that of its process.
void add(MergedStacks& merged, const Stacks& stacks, const MergedStacks::Labels& labels = {},
         pid_t pid = 7) {
  merged.begin(stacks.table, stacks.profile, labels);
  for (const Stacks::Sample& one : stacks.samples) {
    StackSample sample{.time = 5'000'000'000, .pid = pid, .tid = one.tid + pid};
    sample.period = one.event == 0 ? 10 : 1;
    sample.event = one.event;
    sample.comm = one.comm;
    sample.process_comm = "app";
    sample.program = stacks.program;
    sample.end = StackEnd::root;
    sample.frames = one.frames;
    merged.add(sample);
  }
}

std::string written(const MergedStacks& merged, StackFormat format) {
  return test::written([&](OutputFile& out) {
    const auto writer = StackWriter::make(format, out, merged.table(), merged.profile(), {});
    merged.visit([&writer](const StackSample& sample) { writer->add(sample); });
    if (!writer->finish()) std::abort();
  });
}

std::vector<json> lines_of(const MergedStacks& merged) {
  const std::string text = written(merged, StackFormat::jsonl);
  std::vector<json> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    lines.push_back(json::parse(text.substr(at, text.find('\n', at) - at)));
  }
  return lines;
}

/// every_kind() as a recording.
Stacks with_events(std::uint64_t wall_ns = 0, const std::string& host = "web-1") {
  Stacks stacks = test::every_kind();
  stacks.profile.events = {{.name = "cpu-clock", .is_time = true, .period = 10},
                           {.name = "faults"}};
  stacks.profile.hostname = host;
  stacks.profile.wall_ns = wall_ns;
  stacks.profile.clock_ns = 0;
  return stacks;
}

/// The samples of a folded line, by the rest of it.
std::map<std::string, std::uint64_t> counts_of(const std::string& folded) {
  std::map<std::string, std::uint64_t> counts;
  for (std::size_t at = 0; at < folded.size();) {
    const std::size_t end = folded.find('\n', at);
    const std::string line = folded.substr(at, end - at);
    const std::size_t space = line.rfind(' ');
    counts[line.substr(0, space)] += std::stoull(line.substr(space + 1));
    at = end + 1;
  }
  return counts;
}

/// A recording with random stacks of few functions.
Stacks random_stacks(std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::array<std::string_view, 4> kNames = {"a", "b", "c", ""};
  constexpr std::array<FrameKind, 3> kKinds = {FrameKind::native, FrameKind::jit,
                                               FrameKind::kernel};
  Stacks stacks;
  stacks.profile.events = {{.name = "cpu-clock", .is_time = true}, {.name = "faults"}};
  if (below(2) == 0) std::swap(stacks.profile.events[0], stacks.profile.events[1]);
  std::vector<std::uint32_t> places;
  for (unsigned i = 0; i < 1 + below(6); ++i) {
    const FrameKind kind = kKinds[below(kKinds.size())];
    const std::string module =
        kind == FrameKind::jit ? "/tmp/perf-" + std::to_string(below(9)) + ".map" : "/bin/app";
    places.push_back(
        stacks.place({.name = kNames[below(kNames.size())], .module = module, .kind = kind},
                     below(4), 0, below(3)));
  }
  for (unsigned i = 0; i < below(20); ++i) {
    std::vector<std::uint32_t> stack;
    for (unsigned deep = below(4); deep-- > 0;) stack.push_back(places[below(places.size())]);
    stacks.add(stacks.frames(stack), static_cast<pid_t>(below(3)), below(2),
               below(2) == 0 ? "app" : "worker");
  }
  return stacks;
}

}  // namespace

TEST_CASE("stacks of processes that differ only in pids, times and addresses are merged",
          "[merged]") {
  MergedStacks merged;
  add(merged, with_events(), {}, 7);
  const std::size_t stacks = merged.stacks();
  add(merged, with_events(), {}, 8);
  CHECK(stacks == 6);
  CHECK(merged.stacks() == stacks);
  merged.visit([](const StackSample& sample) { CHECK(sample.count == 2); });
  CHECK(merged.profile().title == "2 recordings");
  CHECK(merged.profile().events.size() == 2);
}

TEST_CASE("merged samples keep their counts and the sums of their periods", "[merged]") {
  MergedStacks merged;
  add(merged, with_events());
  add(merged, with_events());
  std::uint64_t count = 0, period = 0;
  merged.visit([&](const StackSample& sample) {
    count += sample.count;
    period += sample.period;
    CHECK(sample.pid == -1);
    CHECK(sample.time == 0);
  });
  CHECK(count == 12);
  CHECK(period == 102);
}

TEST_CASE("a merged profile of recordings is the sum of theirs", "[merged][property]") {
  const auto seed = GENERATE(range(0U, 200U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::vector<Stacks> recordings;
  for (unsigned i = 0; i < 1 + random() % 4; ++i) recordings.push_back(random_stacks(random));

  std::map<std::string, std::uint64_t> sum;
  MergedStacks together, of_each;
  for (const Stacks& one : recordings) {
    for (const auto& [stack, count] : counts_of(one.in(StackFormat::folded))) sum[stack] += count;
    add(together, one);
    MergedStacks single;
    add(single, one);
    of_each.add(single);
  }
  CHECK(counts_of(written(together, StackFormat::folded)) == sum);
  CHECK(written(of_each, StackFormat::jsonl) == written(together, StackFormat::jsonl));
  CHECK(of_each.recordings() == together.recordings());
}

TEST_CASE("the result does not depend on the number of threads", "[merged]") {
  std::mt19937 random(1);
  std::vector<Stacks> recordings;
  for (unsigned i = 0; i < 40; ++i) recordings.push_back(random_stacks(random));
  const auto merge = [&](std::size_t threads) {
    MergedStacks merged;
    std::vector<std::size_t> order;
    const auto read = [&](std::size_t i) -> std::optional<MergedStacks> {
      if (i % 7 == 3) return std::nullopt;
      MergedStacks one;
      add(one, recordings[i]);
      return one;
    };
    merge_in_order(
        recordings.size(), threads, read, [&](std::size_t i) { order.push_back(i); }, merged);
    CHECK(order.size() == recordings.size());
    CHECK(std::ranges::is_sorted(order));
    CHECK(merged.recordings() == 34);
    return written(merged, StackFormat::jsonl);
  };
  CHECK(merge(1) == merge(8));
}

TEST_CASE("an exception while a recording is read ends the merge", "[merged]") {
  MergedStacks merged;
  const auto read = [](std::size_t i) -> std::optional<MergedStacks> {
    if (i == 2) throw std::runtime_error("no");
    return MergedStacks();
  };
  CHECK_THROWS_AS(merge_in_order(
                      100, 4, read, [](std::size_t) {}, merged),
                  std::runtime_error);
}

TEST_CASE("labels keep stacks apart", "[merged]") {
  MergedStacks merged;
  add(merged, with_events(), {.fixed = {{"host", "a"}, {"zone", "x"}, {"host", "b"}}});
  add(merged, with_events(), {.fixed = {{"host", "c"}}});
  CHECK(merged.stacks() == 12);
  const std::vector<json> lines = lines_of(merged);
  CHECK(lines.front()["labels"] == json{{"host", "b"}, {"zone", "x"}});
  CHECK(lines.back()["labels"] == json{{"host", "c"}});
  CHECK(lines.front()["count"] == 1);
}

TEST_CASE("the label build is the build ID of a sample's program", "[merged]") {
  Stacks stacks = with_events();
  stacks.program = stacks.table.add(FrameMapping{.path = "/bin/app", .build_id = "\x01\xab"});
  MergedStacks merged;
  add(merged, stacks, {.build = true});
  add(merged, stacks, {.fixed = {{"build", "1.2"}}, .build = true});
  add(merged, with_events(), {.build = true});
  const std::vector<json> lines = lines_of(merged);
  REQUIRE(lines.size() == 18);
  CHECK(lines[0]["labels"]["build"] == "01ab");
  CHECK(lines[6]["labels"]["build"] == "1.2");
  CHECK(lines[12]["labels"].empty());
}

TEST_CASE("a profile of several recordings has the facts that they share", "[merged]") {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  MergedStacks merged;
  add(merged, with_events(100 * kSecond));
  CHECK(merged.profile().hostname == "web-1");
  add(merged, with_events(160 * kSecond));
  CHECK(merged.profile().hostname == "web-1");
  CHECK(merged.profile().wall_ns == 105 * kSecond);
  CHECK(merged.profile().duration_ns == 60 * kSecond);
  add(merged, with_events(100 * kSecond, "web-2"));
  CHECK(merged.profile().hostname.empty());
}

TEST_CASE("a report of merged stacks counts each of their samples", "[merged]") {
  MergedStacks merged;
  add(merged, with_events());
  add(merged, with_events());
  ProfileReport report(merged.table(), merged.profile(), {});
  merged.visit([&report](const StackSample& sample) { report.add(sample, sample.count); });
  CHECK(report.events().front().total.samples == 10);
  CHECK(report.events().front().processes == 1);
}

TEST_CASE("a frame without a name keeps its address in the file", "[merged]") {
  MergedStacks merged;
  add(merged, with_events());
  const json frame = lines_of(merged)[0]["frames"][3];
  CHECK(frame["name"].is_null());
  CHECK(frame["module"] == "/lib/libc.so.6");
  CHECK(frame["address"] == "0x27248");  // of its call
  CHECK(frame["build_id"] == "0123456789");
}

TEST_CASE("a caller without a name has the address of its call, for symbolizers", "[merged]") {
  MergedStacks merged, again;
  add(merged, with_events());
  again.add(merged);
  for (const MergedStacks* const all : {&merged, &again}) {
    const json profile = json::parse(written(*all, StackFormat::otlp_json));
    std::vector<std::string> addresses;
    for (const json& location : profile["dictionary"]["locationTable"]) {
      addresses.push_back(location.value("address", "0"));
    }
    CHECK(std::ranges::count(addresses, std::to_string(0x27249 - 1)) == 1);
    CHECK(std::ranges::count(addresses, std::to_string(UINT64_MAX)) == 0);
  }
}

TEST_CASE("recordings have labels of their own", "[merged]") {
  StackProfile profile;
  CHECK(!recorded_label("host", profile));
  CHECK(!recorded_label("time", profile));
  CHECK(!recorded_label("build", profile));
  profile.hostname = "web-1";
  profile.wall_ns = 1'700'000'000'123'456'789;
  CHECK(recorded_label("host", profile) == "web-1");
  CHECK(recorded_label("time", profile) == "2023-11-14T22:13:20Z");
  CHECK(recorded_label_keys().size() == 5);
}

}  // namespace perfmap::merged_stacks_test
