// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::profile_writers_test {
namespace {

using nlohmann::json;
using test::every_kind;
using test::kMain;
using test::Stacks;

/// The data of an HTML page, as a browser extracts them.
json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at));
}

/// The names of a Firefox stack, leaf first.
std::vector<std::string> names_of(const json& profile, std::int64_t stack) {
  const json& shared = profile["shared"];
  std::vector<std::string> names;
  for (;;) {
    const auto at = static_cast<std::size_t>(stack);
    const std::size_t function =
        shared["frameTable"]["func"][shared["stackTable"]["frame"][at].get<std::size_t>()];
    names.push_back(
        shared["stringArray"][shared["funcTable"]["name"][function].get<std::size_t>()]);
    const std::int64_t step = shared["stackTable"]["prefixOffset"][at];
    if (step == 0) return names;
    stack -= step;
  }
}

}  // namespace

TEST_CASE("speedscope has a profile for each thread and event", "[stacks]") {
  const json file = json::parse(every_kind().in(StackFormat::speedscope));
  CHECK(file["exporter"] == "perfmap@1.2.3");
  CHECK(file["name"] == "perf.data");
  REQUIRE(file["profiles"].size() == 3);
  const json& first = file["profiles"][0];
  CHECK(first["name"] == "app 7 (cpu-clock)");
  CHECK(first["unit"] == "nanoseconds");
  CHECK(first["weights"] == json({10'101'010, 19'898'990, 10'101'010, 10'101'010}));
  CHECK(first["endValue"] == 50'202'020);
  CHECK(file["profiles"][1]["name"] == "app 7 (page-faults)");
  CHECK(file["profiles"][1]["unit"] == "none");
  CHECK(file["profiles"][2]["name"] == "worker (a b) 7/8 (cpu-clock)");

  std::vector<std::string> names;
  for (const std::size_t frame : first["samples"][0]) {
    names.push_back(file["shared"]["frames"][frame]["name"]);
  }
  CHECK(names == std::vector<std::string>{"[libc.so.6]", "main", "inner", "do_syscall_64"});
  CHECK(first["samples"][1] == json::array());
  CHECK(first["samples"][3] == json({file["shared"]["frames"].size() - 1}));
  CHECK(file["shared"]["frames"].back()["name"] == "[no stack]");
}

TEST_CASE("speedscope shows when threads did not run", "[stacks]") {
  Stacks stacks;
  const std::uint32_t main = stacks.place(kMain, 0x124c, 0x4c);
  const auto add = [&](pid_t tid) { stacks.add(stacks.frames({main}), tid); };
  for (const pid_t tid : {7, 7, 8, 8, 8, 7}) add(tid);
  const json file = json::parse(stacks.in(StackFormat::speedscope));
  const json& first = file["profiles"][0];
  const json& second = file["profiles"][1];
  const auto idle = json::array();
  CHECK(first["samples"] == json({{0}, {0}, idle, {0}}));
  CHECK(first["weights"][2] == 29'797'980);
  // Both begin together, and the second thread's first sample is 20 ms later.
  CHECK(second["samples"] == json({idle, {0}, {0}, {0}}));
  CHECK(second["weights"][0] == 20'000'000);
  // A gap is no longer than the time in which there was no sample.
  CHECK(first["endValue"] == 60'101'010);
  CHECK(second["endValue"] == 50'303'030);
}

TEST_CASE("a Firefox profile has threads that share tables", "[stacks]") {
  const json file = json::parse(every_kind().in(StackFormat::firefox));
  CHECK(file["meta"]["preprocessedProfileVersion"] == 66);
  CHECK(file["meta"]["interval"] == 10);
  CHECK(file["meta"]["startTime"] == 1'700'000'000'010);
  REQUIRE(file["threads"].size() == 3);
  CHECK(file["meta"]["pausedRanges"] == json::array());
  for (const json& thread : file["threads"]) CHECK(thread["pausedRanges"] == json::array());
  const json& samples = file["threads"][0]["samples"];
  CHECK(file["threads"][0]["isMainThread"] == true);
  CHECK(file["threads"][1]["tid"] == "7.1");
  CHECK(samples["length"] == 3);
  CHECK(samples["timeDeltas"] == json({0, 30, 20}));
  CHECK(samples["threadCPUDelta"] == json({10'101, 10'101, 10'101}));
  CHECK(samples["stack"][2].is_null());
  CHECK(names_of(file, samples["stack"][0]) ==
        std::vector<std::string>{"do_syscall_64", "inner", "main", "[libc.so.6]"});
  const json& frames = file["shared"]["frameTable"];
  CHECK(frames["inlineDepth"] == json({0, 0, 1, 0, 0, 0, 0, 0, 0}));
  CHECK(frames["address"][0] == 0x27248);
  CHECK(frames["address"][3] == -1);
  CHECK(file["libs"][0]["breakpadId"] == "674523010089000000000000000000000");
}

TEST_CASE("the HTML page has the tree of processes, threads and functions", "[stacks]") {
  const json data = data_of(every_kind().in(StackFormat::html));
  CHECK(data["samples"] == 6);
  CHECK(data["labels"] == json({"", "app (pid 7)", "app (tid 7)", "worker (a b) (tid 8)"}));
  CHECK(data["parent_distances"].size() == data["frames"].size());
  for (const char* column : {"slots", "nodes", "events_of"}) {
    if (data.contains(column)) CHECK(data[column].size() == data["counts"].size());
  }
  CHECK(data["names"][1] == "main");
  CHECK(data["first_lines"][1] == 12);
  CHECK(data["last_lines"][1] == 12);
  std::uint64_t total = 0;
  for (const std::uint64_t count : data["counts"]) total += count;
  CHECK(total == 6);
}

TEST_CASE("the HTML page has the name of each function without its tier", "[stacks]") {
  const json data = data_of(every_kind().in(StackFormat::html));
  std::size_t merged = 0;
  for (std::size_t i = 0; i < data["names"].size(); ++i) {
    const std::string name = data["names"][i];
    const std::string without_tier = data["strings"][data["merged"][i].get<std::size_t>()];
    if (name.ends_with("foo /a.js:1:13")) {
      CHECK(without_tier == "foo /a.js:1:13");
      ++merged;
    } else {
      CHECK(without_tier.empty());
    }
  }
  CHECK(merged == 2);
  CHECK_FALSE(
      data_of(every_kind().in(StackFormat::html, {.merge_tiers = true})).contains("merged"));
}

TEST_CASE("the HTML page has the time and event of samples", "[stacks]") {
  const json data = data_of(every_kind().in(StackFormat::html));
  CHECK(data["start"] == "1.010000000");
  CHECK(data["duration"] == 50'000'000);
  CHECK(data["slot"] == 100'000);
  CHECK(data["slots"] == json({0, 100, 100, 100, 100, 100}));
  CHECK(data["events_of"].size() == 6);
}

TEST_CASE("the HTML page of many samples has few counts, in wider slots of time", "[stacks]") {
  Stacks stacks;
  const auto frames = stacks.frames({stacks.place(test::kMain, 0x124c, 0x4c)});
  constexpr std::size_t kSamples = 300'000;
  for (std::size_t i = 0; i < kSamples; ++i) stacks.add(frames, i % 3 == 0 ? 8 : 7);
  const json data = data_of(stacks.in(StackFormat::html));
  CHECK(data["samples"] == kSamples);
  CHECK(data["counts"].size() <= std::size_t{1} << 18);
  std::uint64_t total = 0, slots = 0;
  for (const std::uint64_t count : data["counts"]) total += count;
  for (const std::uint64_t distance : data["slots"]) slots += distance;
  CHECK(total == kSamples);
  const std::uint64_t width = data["slot"], duration = data["duration"];
  CHECK(width > 100'000);
  CHECK(slots == duration / width);
}

TEST_CASE("merge_tiers merges the tiers of a function", "[stacks]") {
  const json merged = json::parse(every_kind().in(StackFormat::speedscope, {.merge_tiers = true}));
  std::vector<std::string> names;
  for (const json& frame : merged["shared"]["frames"]) names.push_back(frame["name"]);
  CHECK(std::count(names.begin(), names.end(), "foo /a.js:1:13") == 1);
  const json data = data_of(every_kind().in(StackFormat::html, {.merge_tiers = true}));
  const json& strings = data["strings"];
  CHECK(std::count(strings.begin(), strings.end(), "turbofan") == 0);
}

TEST_CASE("names cannot break out of the page's data", "[stacks][hostile]") {
  Stacks stacks;
  const std::string names[] = {"</script><script>alert(1)</script>",
                               "\"\\'`&<!--",
                               std::string("a\0b", 3),
                               "\u202Etxt.exe",
                               "\xff\xfe",
                               std::string(64 << 10, '<')};
  for (const std::string& name : names) {
    const FrameFunction evil{
        .name = name, .module = name, .file = name, .tier = name, .kind = FrameKind::jit};
    stacks.add(stacks.frames({stacks.place(evil, 0x10, 1)}), 7, 0, name);
  }
  stacks.profile.title = names[0];
  stacks.profile.command = names[1];
  stacks.profile.events[0].name = names[0];
  const std::string page = stacks.in(StackFormat::html);
  const json data = data_of(page);
  CHECK(data["names"][0] == names[0]);
  CHECK(data["names"][1] == names[1]);
  CHECK(data["names"][2] == "a\\x00b");
  CHECK(data["names"][3] == "\\xe2\\x80\\xaetxt.exe");
  CHECK(data["names"][4] == "\\xff\\xfe");
  CHECK(data["names"][5] == names[5]);
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("</script", at)) != std::string::npos; ++at) ++scripts;
  CHECK(scripts == 2);

  for (const StackFormat format : {StackFormat::speedscope, StackFormat::firefox}) {
    CHECK_NOTHROW(json::parse(stacks.in(format)));
  }
}

TEST_CASE("writing the same stacks twice gives the same output", "[stacks]") {
  const Stacks stacks = every_kind();
  for (const StackFormat format : {StackFormat::folded, StackFormat::speedscope,
                                   StackFormat::firefox, StackFormat::pprof, StackFormat::html}) {
    CHECK(stacks.in(format) == stacks.in(format));
  }
}

TEST_CASE("a profile without samples is valid", "[stacks]") {
  Stacks stacks;
  CHECK(stacks.in(StackFormat::folded).empty());
  CHECK(stacks.in(StackFormat::jsonl).empty());
  CHECK(json::parse(stacks.in(StackFormat::speedscope))["profiles"].empty());
  CHECK(json::parse(stacks.in(StackFormat::firefox))["threads"].empty());
  CHECK(data_of(stacks.in(StackFormat::html))["samples"] == 0);
  CHECK_FALSE(stacks.in(StackFormat::pprof).empty());
}

}  // namespace perfmap::profile_writers_test
