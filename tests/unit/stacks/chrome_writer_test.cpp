// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::chrome_writer_test {
namespace {

using nlohmann::json;
using test::kMain;
using test::Stacks;

constexpr FrameFunction kParse{.name = "parse", .module = "/bin/app", .kind = FrameKind::native};
constexpr FrameFunction kRead{.name = "read", .module = "/bin/app", .kind = FrameKind::native};

/// Events of that phase as "name ts", or "ts" without a name.
std::vector<std::string> events(const json& trace, const std::string& phase) {
  std::vector<std::string> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != phase) continue;
    const std::string name = event.contains("name") ? event["name"].get<std::string>() + " " : "";
    found.push_back(name + event["ts"].dump());
  }
  return found;
}

struct At {
  std::uint64_t time;
  std::vector<std::uint32_t> places;
  std::uint32_t event = 0;
};

/// The trace of samples of a thread, each with a period of ten.
json trace_of(const Stacks& stacks, const std::vector<At>& samples) {
  return json::parse(test::written([&](OutputFile& out) {
    const auto writer =
        StackWriter::make(StackFormat::chrome, out, stacks.table, stacks.profile, {});
    for (const At& one : samples) {
      StackSample sample{.time = one.time, .pid = 7, .tid = 8, .period = 10, .event = one.event};
      sample.comm = "worker";
      sample.process_comm = "app";
      const auto frames = stacks.frames(one.places);
      sample.frames = frames;
      writer->add(sample);
    }
    if (!writer->finish()) std::abort();
  }));
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("successive samples of a call are one slice", "[stacks]") {
  Stacks stacks;
  const auto main = stacks.place(kMain, 1, 0);
  const auto parse = stacks.place(kParse, 2, 0);
  const auto read = stacks.place(kRead, 3, 0);
  const json trace =
      trace_of(stacks, {{1010, {parse, main}}, {1021, {parse, main}}, {1030, {read, main}}});
  CHECK(events(trace, "B") == Words{"main 1", "parse 1", "read 1.021"});
  CHECK(events(trace, "E") == Words{"1.021", "1.03", "1.03"});
  CHECK(events(trace, "M") == Words{"process_name 0", "thread_name 0"});
  CHECK(trace["otherData"]["unix_ns_of_zero"] == "1699999999000000000");
}

TEST_CASE("a slice ends where the thread did not run", "[stacks]") {
  Stacks stacks;
  const auto main = stacks.place(kMain, 1, 0);
  const json trace = trace_of(stacks, {{1010, {main}}, {1030, {main}}, {1051, {main}}});
  CHECK(events(trace, "B") == Words{"main 1", "main 1.041"});
  CHECK(events(trace, "E") == Words{"1.03", "1.051"});
}

TEST_CASE("samples that overlap have no negative slices", "[stacks]") {
  Stacks stacks;
  const auto main = stacks.place(kMain, 1, 0);
  const auto read = stacks.place(kRead, 3, 0);
  const json trace = trace_of(stacks, {{5, {main}}, {5, {read}}, {4, {main}}});
  CHECK(events(trace, "B") == Words{"main 0", "read 0.005", "main 0.005"});
  CHECK(events(trace, "E") == Words{"0.005", "0.005", "0.005"});
}

TEST_CASE("samples of other events are instants", "[stacks]") {
  Stacks stacks;
  const auto main = stacks.place(kMain, 1, 0);
  const json trace = trace_of(stacks, {{1010, {main}, 1}, {1011, {main}, 9}});
  CHECK(events(trace, "i") == Words{"page-faults 1.01", " 1.011"});
  CHECK(events(trace, "B").empty());
  CHECK(trace["traceEvents"][2]["args"]["stack"] == json({"main"}));
}

TEST_CASE("a second event that is a time has a track of its own", "[stacks]") {
  Stacks stacks;
  stacks.profile.events[1] = {.name = "off-cpu", .is_time = true};
  const auto main = stacks.place(kMain, 1, 0);
  const json trace = trace_of(stacks, {{1010, {main}}, {1011, {main}, 1}});
  std::set<std::pair<std::uint64_t, std::string>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      tracks.emplace(event["tid"], event["args"]["name"]);
    }
  }
  CHECK(tracks == std::set<std::pair<std::uint64_t, std::string>>{
                      {8, "worker"}, {8 + (std::uint64_t{2} << 22), "worker (off-cpu)"}});
  CHECK(trace_of(Stacks(), {})["traceEvents"].empty());
}

}  // namespace perfmap::chrome_writer_test
