// SPDX-License-Identifier: MIT
// How output formats mark doubtful frames.

#include <nlohmann/json.hpp>
#include <regex>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::doubtful_frames_test {
namespace {

using nlohmann::json;
using test::Stacks;

/// Three frames: one with a doubtful name, one found by a scan, one without doubt.
Stacks doubtful() {
  Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 0x124c, 0x4c, 12);
  FramePlace place = stacks.table.place(stacks.place(test::kFast, 0x2010, 0x10));
  place.doubts.add(Doubt::reused_address);
  place.doubts.add(Doubt::clamped_range);
  std::vector<StackFrame> frames = stacks.frames({stacks.table.add(place), main, main});
  frames[1].source = FrameSource::scan;
  stacks.add(frames);
  return stacks;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("doubts come from the name of a frame and from how it was found", "[stacks][doubt]") {
  FramePlace place;
  CHECK_FALSE(doubts_of({.source = FrameSource::eh_cfi}, place).any());
  CHECK(to_string(doubts_of({.source = FrameSource::scan}, place)) == "scanned-frame");
  CHECK(to_string(doubts_of({.source = FrameSource::stitched}, place)) == "stitched-frame");
  place.doubts.add(Doubt::guessed_owner);
  CHECK(to_string(doubts_of({.source = FrameSource::eh_cfi}, place)) == "guessed-owner");
  CHECK(to_string(doubts_of({.source = FrameSource::scan}, place)) ==
        "guessed-owner,scanned-frame");
}

TEST_CASE("perf script text marks doubtful frames after the module", "[stacks][doubt]") {
  const Stacks stacks = doubtful();
  const auto plain = lines_of(stacks.in(StackFormat::perf_script));
  REQUIRE(plain.size() == 5);
  CHECK(plain[1] == "\t            2010 JS:*foo /a.js:1:13+0x10 (/tmp/perf-7.map)\t(?)");
  CHECK(plain[2] == "\t            124b main+0x4b (/bin/app)\t(?)");
  CHECK(plain[3] == "\t            124b main+0x4b (/bin/app)");
  const auto kinds = lines_of(stacks.in(StackFormat::perf_script, {.doubt_kinds = true}));
  CHECK(kinds[1].ends_with(" (/tmp/perf-7.map)\t(?clamped-range,reused-address)"));
  CHECK(kinds[2].ends_with(" (/bin/app)\t(?scanned-frame)"));
  const auto lines = lines_of(stacks.in(StackFormat::perf_script, {.lines = true}));
  CHECK(lines[2].ends_with(" (/bin/app)\t(?)"));
  CHECK(lines[3] == "  app.c:12");
}

TEST_CASE("readers of perf script text still parse marked frames", "[stacks][doubt]") {
  // The expression of stackcollapse-perf.pl, speedscope and the Firefox Profiler. inferno takes
  // everything before the last blank as the function.
  const std::regex frame(R"(^\s*(\w+)\s*(.+) \((\S*)\))");
  for (const bool kinds : {false, true}) {
    const auto lines = lines_of(doubtful().in(StackFormat::perf_script, {.doubt_kinds = kinds}));
    for (const std::size_t i : {1, 2, 3}) {
      CAPTURE(lines[i]);
      const std::string name = i == 1 ? "JS:*foo /a.js:1:13+0x10" : "main+0x4b";
      std::smatch match;
      REQUIRE(std::regex_search(lines[i], match, frame));
      CHECK(match[2] == name);
      CHECK(match[3] == (i == 1 ? "/tmp/perf-7.map" : "/bin/app"));
      CHECK(lines[i].substr(0, lines[i].rfind(' ')).ends_with(" " + name));
    }
  }
}

TEST_CASE("a JSON line lists the doubts of a frame", "[stacks][doubt]") {
  const json frames = json::parse(doubtful().in(StackFormat::jsonl))["frames"];
  CHECK(frames[0]["doubts"] == json({"clamped-range", "reused-address"}));
  CHECK(frames[1]["doubts"] == json({"scanned-frame"}));
  CHECK_FALSE(frames[2].contains("doubts"));
}

TEST_CASE("the HTML page has the doubts of each function over all samples", "[stacks][doubt]") {
  const auto data_of = [](const Stacks& stacks) {
    const std::string page = stacks.in(StackFormat::html);
    const std::string begin = "id=\"data\">";
    const std::size_t at = page.find(begin) + begin.size();
    return json::parse(page.substr(at, page.find("</script>", at) - at));
  };
  const json data = data_of(doubtful());
  const auto doubts = [&](std::size_t function) {
    return data["strings"][data["doubts"][function].get<std::size_t>()];
  };
  CHECK(doubts(0) == "scanned-frame");
  CHECK(doubts(1) == "clamped-range,reused-address");
  CHECK_FALSE(data_of(test::every_kind()).contains("doubts"));
}

TEST_CASE("formats with functions only do not split a function by its doubts", "[stacks][doubt]") {
  CHECK(doubtful().in(StackFormat::folded) == "app;main;main;JS:*foo /a.js:1:13_[j] 1\n");
  const json file = json::parse(doubtful().in(StackFormat::speedscope));
  CHECK(file["shared"]["frames"].size() == 2);
}

}  // namespace perfmap::doubtful_frames_test
