// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "perfmap/profile/report.hpp"
#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"
#include "support/stacks.hpp"
#include "support/written.hpp"

namespace perfmap::profile_report_test {
namespace {

/// Counts the samples of test::Stacks.
ProfileReport report_of(const test::Stacks& stacks, const ProfileReport::Options& options = {}) {
  ProfileReport report(stacks.table, stacks.profile, options);
  for (const test::Stacks::Sample& one : stacks.samples) {
    StackSample sample{.pid = 7, .tid = one.tid};
    sample.period = one.event == 0 ? 10'101'010 : 1;
    sample.event = one.event;
    sample.comm = one.comm;
    sample.process_comm = "app";
    sample.frames = one.frames;
    report.add(sample);
  }
  return report;
}

using Write = void(const ProfileReport& report, const ReportOutput& output, OutputFile& out);

std::string in(Write* write, const ProfileReport& report, const ReportOutput& output = {}) {
  return test::written([&](OutputFile& out) { write(report, output, out); });
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> names(const std::vector<ReportRow>& rows) {
  std::vector<std::string> names;
  for (const ReportRow& row : rows) names.emplace_back(row.name);
  return names;
}

/// A stack of one function that is called `name`.
test::Stacks one_function(const FrameFunction& function) {
  test::Stacks stacks;
  stacks.add(stacks.frames({stacks.place(function, 0x10, 0)}));
  return stacks;
}

}  // namespace

TEST_CASE("a report counts each event separately", "[report]") {
  const test::Stacks stacks = test::every_kind();
  const ProfileReport report = report_of(stacks);
  const auto events = report.events();
  REQUIRE(events.size() == 2);
  CHECK(events[0].name == "cpu-clock");
  CHECK(events[0].is_time);
  CHECK(events[0].total == ReportCounts{5, 5 * 10'101'010});
  CHECK(events[1].total == ReportCounts{1, 1});
  CHECK(events[1].processes == 1);
  CHECK(names(report.rows(1)) == std::vector<std::string>{"main"});
  CHECK(report.rows(2).empty());
}

TEST_CASE("a sample without frames counts for its event only", "[report]") {
  test::Stacks stacks;
  stacks.add({});
  const ProfileReport report = report_of(stacks);
  CHECK(report.events().at(0).total.samples == 1);
  CHECK(report.rows(0).empty());
  CHECK(report_of(stacks, {.by = ReportBy::thread}).rows(0).size() == 1);
}

TEST_CASE("samples of an event that the profile does not list count together", "[report]") {
  test::Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 1, 0);
  stacks.add(stacks.frames({main}), 7, 5);
  stacks.add(stacks.frames({main}), 7, UINT32_MAX);
  const ProfileReport report = report_of(stacks);
  REQUIRE(report.events().size() == 1);
  CHECK(report.events()[0].name == "unknown");
  CHECK(report.rows(report.events()[0].number).at(0).self.samples == 2);
}

TEST_CASE("the tiers of a function are one row, or one each", "[report]") {
  const test::Stacks stacks = test::every_kind();
  const ProfileReport merged = report_of(stacks);
  const std::vector<ReportRow> rows = merged.rows(0);
  REQUIRE(rows.at(0).name == "foo /a.js:1:13");
  CHECK(rows[0].self.samples == 2);
  CHECK(rows[0].tiers == std::vector<std::string_view>{"turbofan", "interpreted"});
  CHECK(rows[0].module == "/tmp/perf-7.map");
  const ProfileReport apart = report_of(stacks, {.merge_tiers = false});
  CHECK(apart.find("JS:*foo /a.js:1:13").size() == 1);
  CHECK(apart.find("foo").size() == 2);
  CHECK(merged.find("foo /a.js:1:13 [turbofan, interpreted]").size() == 1);
}

TEST_CASE("a row is found by its name as it is printed", "[report]") {
  test::Stacks stacks;
  const FrameFunction red{
      .name = "esc \x1b[31mred\x1b[0m", .module = "/tmp/perf-7.map", .kind = FrameKind::jit};
  stacks.add(stacks.frames({stacks.place(red, 0x1004, 4)}), 7, 0);
  const ProfileReport report = report_of(stacks);
  CHECK(report.find(R"(esc \x1b[31mred\x1b[0m)").size() == 1);
  CHECK(report.find(R"(esc \x1b[31mred\x1b[0m [perf-7.map])").size() == 1);
  CHECK(report.find(R"(\x1b[0m)").size() == 1);
}

TEST_CASE("JIT code of several maps is one row without a module", "[report]") {
  test::Stacks stacks;
  FrameFunction other = test::kFast;
  other.module = "/tmp/perf-8.map";
  stacks.add(stacks.frames({stacks.place(test::kFast, 0x10, 0)}));
  stacks.add(stacks.frames({stacks.place(other, 0x10, 0)}));
  const std::vector<ReportRow> rows = report_of(stacks).rows(0);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].self.samples == 2);
  CHECK(rows[0].module.empty());
  CHECK(report_of(stacks, {.by = ReportBy::module}).rows(0).size() == 2);
}

TEST_CASE("native functions with one name in two files are two rows", "[report]") {
  test::Stacks stacks;
  FrameFunction other = test::kMain;
  other.module = "/bin/other";
  stacks.add(stacks.frames({stacks.place(test::kMain, 0x10, 0)}));
  stacks.add(stacks.frames({stacks.place(other, 0x10, 0)}));
  const ProfileReport report = report_of(stacks);
  CHECK(report.rows(0).size() == 2);
  CHECK(report.find("main").size() == 2);
}

TEST_CASE("each key has its rows", "[report]") {
  const test::Stacks stacks = test::every_kind();
  const auto rows = [&](ReportBy by) { return names(report_of(stacks, {.by = by}).rows(0)); };
  using List = std::vector<std::string>;
  CHECK(rows(ReportBy::thread) == List{"app 7", "worker (a b) 7/8"});
  CHECK(rows(ReportBy::process) == List{"app 7"});
  CHECK(rows(ReportBy::tier) ==
        List{"[native]", "[kernel]", "interpreted", "turbofan", "[unknown]"});
  CHECK(rows(ReportBy::runtime) == List{"v8", "[native]", "[kernel]", "[unknown]"});
  CHECK(rows(ReportBy::module) == List{"/tmp/perf-7.map", "/lib/libc.so.6", "[kernel.kallsyms]",
                                       "/bin/app", "[native]", "[unknown]"});
  for (const std::string& name : report_by_names()) CHECK(to_string(*report_by(name)) == name);
  CHECK_FALSE(report_by("colour"));
}

TEST_CASE("rows by line have the line and the file", "[report]") {
  const test::Stacks stacks = test::every_kind();
  const ProfileReport report = report_of(stacks, {.by = ReportBy::line});
  const auto rows = report.rows(0, ProfileReport::Order::total);
  REQUIRE(rows.at(0).name == "main");
  CHECK(rows[0].line == 12);
  CHECK(rows[0].file == "app.c");
  CHECK(has(in(write_report_text, report), "main (app.c:12) [app]\n"));
}

TEST_CASE("a weighted event counts its periods", "[report]") {
  test::Stacks stacks = one_function(test::kMain);
  stacks.profile.events[0].is_weighted = true;
  const ProfileReport report = report_of(stacks);
  CHECK(report.events().at(0).total.samples == 10'101'010);
}

TEST_CASE("sums of a report end at the maximum", "[report]") {
  ReportCounts counts{UINT64_MAX - 1, 1};
  counts.add({5, UINT64_MAX});
  CHECK(counts == ReportCounts{UINT64_MAX, UINT64_MAX});
}

TEST_CASE("the text of a report", "[report]") {
  const test::Stacks stacks = test::every_kind();
  CHECK(in(write_report_text, report_of(stacks), {.top = 3}) ==
        "5 samples of cpu-clock, 0.051 s, 1 process\n"
        "SELF   SELF%  TOTAL  TOTAL%  FUNCTION\n"
        "   2  40.00%      2  40.00%  foo /a.js:1:13 [turbofan, interpreted]\n"
        "   1  20.00%      2  40.00%  [libc.so.6]\n"
        "   1  20.00%      1  20.00%  do_syscall_64 [kernel.kallsyms]\n"
        "... 3 more functions\n"
        "\n"
        "1 sample of page-faults, 1 process\n"
        "SELF    SELF%  TOTAL   TOTAL%  FUNCTION\n"
        "   1  100.00%      1  100.00%  main (app.c:12) [app]\n");
}

TEST_CASE("a name cannot control the terminal", "[report]") {
  const test::Stacks stacks =
      one_function({.name = "a\x1b[2J\nb", .module = "/x/\x1b]", .kind = FrameKind::native});
  const std::string text = in(write_report_text, report_of(stacks));
  CHECK_FALSE(has(text, "\x1b"));
  CHECK(has(text, "a\\x1b[2J\\x0ab [\\x1b]]\n"));
}

TEST_CASE("a long name continues below itself", "[report]") {
  const test::Stacks stacks =
      one_function({.name = "abcdefghijklmnopqrstuvwxyz", .kind = FrameKind::native});
  const std::string text = in(write_report_text, report_of(stacks), {.width = 55});
  CHECK(has(text, "  abcdefghijklmnopqrstuvwx\n" + std::string(31, ' ') + "yz\n"));
}

TEST_CASE("a coloured report has the same text", "[report]") {
  const test::Stacks stacks = test::every_kind();
  const ProfileReport report = report_of(stacks);
  std::string text = in(write_report_text, report, {.color = true});
  CHECK(has(text, "\x1b[1;31m"));
  for (std::size_t at = 0; (at = text.find('\x1b')) != std::string::npos;) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  CHECK(text == in(write_report_text, report));
}

TEST_CASE("a tree of the text leaves out small and deep branches", "[report]") {
  test::Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 1, 0);
  const std::uint32_t leaf = stacks.place({.name = "leaf"}, 2, 0);
  const std::uint32_t rare = stacks.place({.name = "rare"}, 3, 0);
  for (int i = 0; i < 300; ++i) stacks.add(stacks.frames({leaf, main}));
  stacks.add(stacks.frames({rare, main}));
  std::vector<std::uint32_t> deep(40, leaf);
  deep.push_back(main);
  for (int i = 0; i < 20; ++i) stacks.add(stacks.frames(deep));
  const ProfileReport report = report_of(stacks, {.keeps_stacks = true});
  const ReportOutput output{.callees = report.find("main")};
  const std::string text = in(write_report_text, report, output);
  CHECK(has(text, "callees of main: 321 (100.00%)\n"));
  CHECK_FALSE(has(text, "rare"));
  CHECK(has(text, "... 9 more in small or deep branches\n"));
  const ReportOutput first{.top = 2, .callees = report.find("main")};
  CHECK(has(in(write_report_text, report, first), "... 40 more\n"));
  const auto json = nlohmann::json::parse(in(write_report_json, report, output));
  CHECK(json["events"][0]["callees"].size() == 42);
}

TEST_CASE("CSV quotes what it must", "[report]") {
  const test::Stacks stacks =
      one_function({.name = "f(a, \"b\")\n", .module = "/x", .kind = FrameKind::native});
  const std::string text = in(write_report_csv, report_of(stacks));
  CHECK(text ==
        "event,self,self_share,total,total_share,self_period,total_period,name,module,kind,tiers,"
        "file,line,pid,tid\r\n"
        "cpu-clock,1,1.000000,1,1.000000,10101010,10101010,\"f(a, \"\"b\"\")\\x0a\",/x,native,,,"
        ",,\r\n");
}

TEST_CASE("a name in CSV is text for a spreadsheet, and no formula", "[report]") {
  const auto [name, field] = GENERATE(table<std::string, std::string>({
      {"=cmd|calc!A1", "'=cmd|calc!A1"},
      {"+f", "'+f"},
      {"-[NSObject init]", "'-[NSObject init]"},
      {"@plt", "'@plt"},
      {"f=", "f="},
      {"=f(\"a\")", "\"'=f(\"\"a\"\")\""},
  }));
  const test::Stacks stacks = one_function({.name = name, .kind = FrameKind::jit});
  CHECK(has(in(write_report_csv, report_of(stacks)), "," + field + ","));
}

TEST_CASE("JSON has names that are not UTF-8", "[report]") {
  const test::Stacks stacks = one_function({.name = "a\xff", .kind = FrameKind::native});
  const auto json = nlohmann::json::parse(in(write_report_json, report_of(stacks)));
  const auto& row = json["events"][0]["rows"][0];
  CHECK(row["name"] == "a\xef\xbf\xbd");
  CHECK(row["name_bytes"] == "Yf8=");
  CHECK(row["self_share"] == 1);
  CHECK(json["events"][0]["more_rows"] == 0);
}

TEST_CASE("a function has the line with most samples of its own", "[report]") {
  test::Stacks stacks;
  ProfileReport report(stacks.table, stacks.profile, ProfileReport::Options());
  const FrameFunction jit{.name = "f", .system_name = "f", .file = "a.erl", .kind = FrameKind::jit};
  const FrameFunction native{
      .name = "g", .module = "/bin/g", .file = "g.c", .kind = FrameKind::native};
  const auto add = [&](std::uint32_t leaf, std::uint32_t caller, std::uint64_t count) {
    const auto frames = stacks.frames({leaf, caller});
    StackSample sample{.pid = 7, .tid = 7, .period = count};
    sample.frames = frames;
    report.add(sample, count);
  };
  const std::uint32_t cold = stacks.place(jit, 0x10, 0, 3);
  const std::uint32_t hot = stacks.place(jit, 0x20, 0, 4);
  const std::uint32_t other = stacks.place(native, 0x30, 0, 5);
  add(cold, hot, 2);
  add(hot, cold, 3);
  add(other, cold, 50);  // a caller's line does not count
  const auto rows = report.rows(0);
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].name == "g" && rows[0].file == "g.c" && rows[0].line == 5));
  CHECK((rows[1].name == "f" && rows[1].file == "a.erl" && rows[1].line == 4));
}

TEST_CASE("a line inlined from another file is marked, and is no line of the function",
          "[report]") {
  test::Stacks stacks;
  FrameFunction foo = test::kFast;
  foo.file = "/a.js";
  FramePlace other = stacks.table.place(stacks.place(foo, 0x10, 0));
  other.inlined_line = 139;
  const std::uint32_t inlined = stacks.table.add(other);
  const std::uint32_t own = stacks.place(foo, 0x20, 0, 4);
  stacks.add(stacks.frames({inlined}));
  stacks.add(stacks.frames({inlined}));
  stacks.add(stacks.frames({own}));
  const ProfileReport report = report_of(stacks);
  const std::vector<ReportRow> rows = report.rows(0);
  REQUIRE(rows.size() == 1);
  // Where it begins, because the inlined code has most of its samples.
  CHECK(rows[0].self.samples == 3);
  CHECK(rows[0].file == "/a.js");
  CHECK(rows[0].line == 1);
  const ProfileReport by_line = report_of(stacks, {.by = ReportBy::line});
  REQUIRE(by_line.rows(0).size() == 2);
  CHECK((by_line.rows(0)[0].file == kInlinedFromAnotherFile && by_line.rows(0)[0].line == 139));
  const std::string folded = stacks.in(StackFormat::folded, {.lines = true});
  CHECK(has(folded, "foo /a.js:1:13 ([inlined from another file]:139)_[j] 2"));
  CHECK(has(folded, "foo /a.js:1:13 (/a.js:4)_[j] 1"));
  CHECK(has(stacks.in(StackFormat::perf_script, {.lines = true}),
            "\n  [inlined from another file]:139\n"));
  CHECK_FALSE(has(stacks.in(StackFormat::jsonl), "139"));
}

TEST_CASE("an inlined function is a row, or a part of the function that contains it", "[report]") {
  test::Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 0x124c, 0x4c, 12);
  const std::uint32_t inner = stacks.place(test::kInner, 0x124c, 0, 3);
  stacks.add(stacks.frames({inner, main}));
  const ProfileReport report = report_of(stacks);
  const std::vector<ReportRow> apart = report.rows(0);
  REQUIRE(names(apart) == std::vector<std::string>{"inner", "main"});
  CHECK((apart[0].file == "inner.h" && apart[0].line == 3));
  CHECK((apart[1].self.samples == 0 && apart[1].line == 0));
  const ProfileReport without = report_of(stacks, {.inlines = false});
  const std::vector<ReportRow> whole = without.rows(0);
  REQUIRE(names(whole) == std::vector<std::string>{"main"});
  CHECK((whole[0].self.samples == 1 && whole[0].line == 12));
}

TEST_CASE("a function without lines has the place that its runtime's name says", "[report]") {
  struct Case {
    std::string_view raw, name, file;
    std::uint32_t line;
    std::string_view text;
  };
  const auto c = GENERATE(values<Case>({
      {"JS:*foo /a/b.js:12:3", "foo /a/b.js:12:3", "/a/b.js", 12, "foo /a/b.js:12:3 [turbofan]\n"},
      {"py::f:/srv/app.py", "py::f:/srv/app.py", "/srv/app.py", 0, "py::f:/srv/app.py ["},
      {"TRACE-3$digits$4", "digits", "", 4, "digits (line 4) [trace]\n"},
      {"[JIT] T#m@/srv/t.rb:7", "[JIT] T#m@/srv/t.rb:7", "/srv/t.rb", 7, "/srv/t.rb:7 [jit]\n"},
      {"long A.b(long)", "long A.b(long)", "", 0, "long A.b(long) [jit]\n"},
  }));
  CAPTURE(c.raw);
  FrameFunction function{.name = c.raw, .system_name = c.raw, .kind = FrameKind::jit};
  const DecodedName decoded = decode_name(c.raw);
  function.tier = decoded.tier;
  const test::Stacks stacks = one_function(function);
  const ProfileReport report = report_of(stacks);
  const std::vector<ReportRow> rows = report.rows(0);
  REQUIRE(names(rows) == std::vector<std::string>{std::string(c.name)});
  CHECK((rows[0].file == c.file && rows[0].line == c.line));
  CHECK(has(in(write_report_text, report), c.text));
  const ProfileReport by_line = report_of(stacks, {.by = ReportBy::line});
  CHECK(by_line.rows(0).at(0).line == c.line);
  CHECK_FALSE(by_line.rows(0).at(0).is_line_of_samples);
}

TEST_CASE("the traces of a PHP function are one row, with the line of the hottest", "[report]") {
  test::Stacks stacks;
  const auto trace = [&](std::string_view name) {
    return stacks.frames({stacks.place(
        {.name = name, .system_name = name, .tier = "trace", .kind = FrameKind::jit}, 0x10, 0)});
  };
  stacks.add(trace("TRACE-1$digits$4"));
  stacks.add(trace("TRACE-2$digits$9"));
  stacks.add(trace("TRACE-2$digits$9"));
  const ProfileReport report = report_of(stacks);
  const std::vector<ReportRow> rows = report.rows(0);
  REQUIRE(names(rows) == std::vector<std::string>{"digits"});
  CHECK((rows[0].line == 9 && rows[0].self.samples == 3));
  CHECK(rows[0].tiers == std::vector<std::string_view>{"trace"});
  CHECK(report_of(stacks, {.merge_tiers = false}).rows(0).size() == 2);

  const ProfileReport by_line = report_of(stacks, {.by = ReportBy::line});
  const std::vector<ReportRow> lines = by_line.rows(0);
  REQUIRE(names(lines) == std::vector<std::string>{"digits", "digits"});
  CHECK((lines[0].line == 9 && lines[0].self.samples == 2 && !lines[0].is_line_of_samples));
  CHECK(has(in(write_report_text, by_line), "digits (line 4) [trace]"));
}

}  // namespace perfmap::profile_report_test
