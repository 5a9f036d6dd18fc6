// SPDX-License-Identifier: MIT
#include "perfmap/report.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::report_test {
namespace {

using Json = nlohmann::json;

Diagnostic finding(const Rule& rule, Location where, std::string message) {
  return {&rule, where, std::move(message), 0};
}

const std::string kText = "10000 1 fine\n0x7f3529fcf759 b py::bar\n";
const Diagnostic kPrefix = finding(rule::kHexPrefix, {13, 2, 1}, "the format has no 0x prefix");

/// The findings of one text, as a report takes them.
struct Report {
  std::string text;
  Diagnostics problems = test::lint_text(text);
  std::vector<FileFindings> files{{"some dir/perf-42.map", text, &problems}};
};

void check_location(const Json& location) {
  const Json& physical = location.at("physicalLocation");
  CHECK(physical.at("artifactLocation").at("uri") == "some%20dir/perf-42.map");
  CHECK(physical.at("region").at("startLine").get<int>() >= 1);
  CHECK(physical.at("region").value("startColumn", 1) >= 1);
}

/// Checks what the SARIF 2.1.0 schema requires of our output, and what GitHub requires in addition.
void check_sarif(const Json& sarif) {
  CHECK(sarif.at("version") == "2.1.0");
  CHECK(sarif.at("$schema") == "https://json.schemastore.org/sarif-2.1.0.json");
  REQUIRE(sarif.at("runs").size() == 1);
  const Json& run = sarif.at("runs").at(0);
  CHECK(run.at("columnKind") == "unicodeCodePoints");
  const Json& driver = run.at("tool").at("driver");
  CHECK(driver.at("name") == "perfmap");
  CHECK(driver.at("informationUri") == "file:///docs/README.md");
  const Json& rules = driver.at("rules");
  CHECK(rules.size() == rule::all().size());
  const std::set<std::string> levels{"none", "note", "warning", "error"};
  for (const Json& rule : rules) {
    CHECK(!rule.at("shortDescription").at("text").get<std::string>().empty());
    CHECK(!rule.at("fullDescription").at("text").get<std::string>().empty());
    CHECK(rule.at("help").at("text") == rule.at("fullDescription").at("text"));
    CHECK(rule.at("helpUri").get<std::string>().starts_with("file:///docs/docs/diagnostics.md#"));
    CHECK(!rule.at("name").get<std::string>().empty());
    CHECK(levels.contains(rule.at("defaultConfiguration").at("level").get<std::string>()));
  }
  CHECK(run.at("invocations").at(0).at("executionSuccessful") == true);
  CHECK(run.at("results").size() <= kMaxSarifResults);
  for (const Json& result : run.at("results")) {
    CHECK(rules.at(result.at("ruleIndex").get<std::size_t>()).at("id") == result.at("ruleId"));
    CHECK(levels.contains(result.at("level").get<std::string>()));
    CHECK(!result.at("message").at("text").get<std::string>().empty());
    REQUIRE(result.at("locations").size() == 1);
    check_location(result.at("locations").at(0));
    CHECK(result.at("partialFingerprints").at("perfmapFinding/v1").get<std::string>().find(':') >
          0);
    if (result.contains("relatedLocations")) check_location(result["relatedLocations"].at(0));
  }
}

}  // namespace

TEST_CASE("the gcc format is one line with location, level and rule", "[report]") {
  CHECK(to_gcc(kPrefix, "perf-42.map") ==
        "perf-42.map:2:1: warning: the format has no 0x prefix [PM004]\n");
  CHECK(to_gcc(finding(rule::kNotSorted, {0, 1, 1}, "text"), "f") == "f:1:1: note: text [PM113]\n");
}

TEST_CASE("control bytes in names and paths are escaped", "[report]") {
  const Diagnostic one = finding(rule::kOverlap, {0, 1, 1}, "overlaps '\x1b[31m\xff' of line 1");
  const std::string expected = "a\\x0ab:1:1: error: overlaps '\\x1b[31m\\xff' of line 1 [PM103]\n";
  CHECK(to_gcc(one, "a\nb") == expected);
  CHECK(to_pretty(one, "a\nb", "x\x1by\n", false) ==
        expected + "  x\\x1by\n  ^ --fix fixes this\n");
  CHECK(to_github(one, "f") ==
        "::error file=f,line=1,col=1,title=PM103::overlaps '\\x1b[31m\\xff' of line 1\n");
}

TEST_CASE("invisible characters are escaped", "[report]") {
  const Diagnostic one = finding(rule::kDeceptiveName, {0, 1, 1}, "text");
  CHECK(to_pretty(one, "f",
                  "a\xe2\x80\xae"
                  "b\xc2\x9b"
                  "c\n",
                  false) == "f:1:1: info: text [PM035]\n  a\\xe2\\x80\\xaeb\\xc2\\x9bc\n  ^\n");
}

TEST_CASE("the pretty format shows the line, a caret, and whether --fix can fix it", "[report]") {
  CHECK(to_pretty(kPrefix, "perf-42.map", kText, false) ==
        "perf-42.map:2:1: warning: the format has no 0x prefix [PM004]\n"
        "  0x7f3529fcf759 b py::bar\n"
        "  ^ --fix fixes this\n");
  CHECK(to_pretty(finding(rule::kSemicolon, {16, 2, 4}, "text"), "f", "10000 1 fine\n日;x\n",
                  false) == "f:2:4: warning: text [PM030]\n  日;x\n   ^\n");
}

TEST_CASE("only the level is coloured", "[report]") {
  CHECK(to_pretty(kPrefix, "f", "", true) ==
        "f:2:1: \x1b[1;33mwarning\x1b[0m: the format has no 0x prefix [PM004]\n  --fix fixes "
        "this\n");
}

TEST_CASE("a finding about the whole file shows no line", "[report]") {
  CHECK(to_pretty(finding(rule::kOddDirectory, {0, 1, 1}, "text"), "f", kText, false) ==
        "f:1:1: info: text [PM070]\n");
  CHECK(to_pretty(finding(rule::kWritableByOthers, {0, 1, 1}, "text"), "f", kText, false) ==
        "f:1:1: warning: text [PM061]\n  --fix fixes this\n");
  CHECK(to_pretty(finding(rule::kReuseRate, {0, 1, 1}, "text"), "f", kText, false) ==
        "f:1:1: info: text [PM114]\n");
}

TEST_CASE("of a long line only the part around the caret is shown", "[report]") {
  const std::string line(1'000'000, 'x');
  const std::string shown =
      to_pretty(finding(rule::kControlByte, {500'000, 1, 500'001}, "text"), "f", line, false);
  CHECK(shown == "f:1:500001: warning: text [PM025]\n  " + std::string(160, 'x') + "\n  " +
                     std::string(80, ' ') + "^ --fix fixes this\n");
}

TEST_CASE("workflow commands escape their separators", "[report]") {
  CHECK(to_github(finding(rule::kNotSorted, {0, 1, 1}, "100 %: a, b"), "a,b:c%.map") ==
        "::notice file=a%2Cb%3Ac%25.map,line=1,col=1,title=PM113::100 %25: a, b\n");
}

TEST_CASE("the JSON report also counts findings that it does not show", "[report]") {
  Diagnostics problems(1);
  lint(Map(Input::from_text("0x10000 0x1 a;b\n", "f")), problems);
  const Json json = Json::parse(to_lint_json({{"f", "", &problems}}));
  CHECK(json.at("schema") == "perfmap.lint/1");
  CHECK(json.at("findings").size() == 2);
  CHECK(json.at("findings").at(0) == Json{{"rule", "PM004"},
                                          {"severity", "warning"},
                                          {"file", "f"},
                                          {"line", 1},
                                          {"column", 1},
                                          {"offset", 0},
                                          {"message", "the format has no 0x prefix"},
                                          {"fixable", true}});
  CHECK(json.at("summary") ==
        Json{{"files", 1}, {"error", 0}, {"warning", 3}, {"info", 0}, {"shown", 2}});
}

TEST_CASE("each line of the JSON lines report is an object", "[report]") {
  const Report report{"0x10000 0x1 a;b\n"};
  const std::string lines = to_lint_jsonl(report.files);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
  CHECK(Json::parse(lines.substr(0, lines.find('\n'))).at("rule") == "PM004");
  CHECK(to_lint_jsonl({}).empty());
}

TEST_CASE("the SARIF report conforms to its schema", "[report]") {
  const Report report{"0x10000 0x1 a;b\n10000 10 second\n10008 10 third\nbad\n"};
  const Json sarif = Json::parse(to_sarif(report.files, "1.2.3", "file:///docs"));
  check_sarif(sarif);
  CHECK(sarif["runs"][0]["results"].size() == report.problems.items().size());
  CHECK(sarif["runs"][0]["tool"]["driver"]["version"] == "1.2.3");
  check_sarif(Json::parse(to_sarif({}, "1.2.3", "file:///docs")));
}

TEST_CASE("SARIF columns count code points, and an invalid byte as one", "[report]") {
  const Report report{"10000 1 日本\xff;x\n"};
  const Json sarif = Json::parse(to_sarif(report.files, "1", "file:///docs"));
  std::vector<std::pair<std::string, int>> columns;
  for (const Json& one : sarif["runs"][0]["results"]) {
    columns.emplace_back(one["ruleId"],
                         one["locations"][0]["physicalLocation"]["region"]["startColumn"]);
  }
  CHECK(columns == std::vector<std::pair<std::string, int>>{{"PM024", 11}, {"PM030", 12}});
}

TEST_CASE("SARIF locations are URIs, and invalid UTF-8 does not break the JSON", "[report]") {
  Diagnostics problems(0);
  problems.keep(finding(rule::kOverlap, {0, 1, 1}, "overlaps '\xff'"));
  const Json sarif =
      Json::parse(to_sarif({{"/tmp/a b\xff.map", "", &problems}}, "1", "file:///docs"));
  const Json& result = sarif["runs"][0]["results"][0];
  CHECK(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] ==
        "file:///tmp/a%20b%FF.map");
  CHECK(result["message"]["text"] == "overlaps '\xef\xbf\xbd'");
}

namespace {

Json results_of(const Report& report) {
  const Json sarif = Json::parse(to_sarif(report.files, "1", "file:///docs"));
  return sarif["runs"][0]["results"];
}

/// The replacement of a result's only fix.
Json replacement_of(const Json& result) {
  return result.at("fixes").at(0).at("artifactChanges").at(0).at("replacements").at(0);
}

std::vector<std::string> fingerprints_of(const Report& report) {
  std::vector<std::string> found;
  for (const Json& one : results_of(report)) {
    found.push_back(one["partialFingerprints"]["perfmapFinding/v1"]);
  }
  return found;
}

}  // namespace

TEST_CASE("a SARIF fix replaces the line by the one that tidy writes", "[report]") {
  const Report report{"20000 8 fine\n0x10000  0x1 x;y\n# c\n30000 0 日本"};
  std::map<std::string, Json> by_rule;
  for (const Json& one : results_of(report)) by_rule[one["ruleId"]] = one;
  const Json line = {{"startLine", 2}, {"startColumn", 1}, {"endLine", 3}, {"endColumn", 1}};
  const Json portable = {{"deletedRegion", line}, {"insertedContent", {{"text", "10000 1 x;y\n"}}}};
  CHECK(replacement_of(by_rule.at("PM004")) == portable);
  CHECK(replacement_of(by_rule.at("PM005")) == portable);
  CHECK_FALSE(by_rule.at("PM030").contains("fixes"));  // a semicolon stays
  CHECK_FALSE(by_rule.at("PM113").contains("fixes"));  // needs other lines
  CHECK(replacement_of(by_rule.at("PM011")) ==
        Json{{"deletedRegion",
              {{"startLine", 3}, {"startColumn", 1}, {"endLine", 4}, {"endColumn", 1}}}});
  const Json last = {{"startLine", 4}, {"startColumn", 1}, {"endLine", 4}, {"endColumn", 11}};
  CHECK(replacement_of(by_rule.at("PM009")) ==
        Json{{"deletedRegion", last}, {"insertedContent", {{"text", "30000 1 日本\n"}}}});
}

TEST_CASE("a SARIF fingerprint does not depend on addresses", "[report]") {
  const auto before = fingerprints_of({"10000 8 a;b\n20000 8 c;d\n30000 8 a;b\n"});
  const auto after = fingerprints_of({"70000 8 a;b\n80000 8 c;d\n90000 8 a;b\n"});
  REQUIRE(before.size() == 3);
  CHECK(before == after);
  CHECK(before[0].ends_with(":1"));
  CHECK(before[0] != before[1]);
  CHECK(before[2] == before[0].substr(0, before[0].size() - 1) + "2");
}

TEST_CASE("SARIF has as many results as GitHub accepts, the worst ones", "[report]") {
  Diagnostics problems(0);
  for (std::size_t i = 0; i < kMaxSarifResults; ++i) {
    problems.add(rule::kNotSorted, {0, 1, 1}, "info");
  }
  problems.add(rule::kOverlap, {0, 1, 1}, "error");
  problems.add(rule::kHexPrefix, {0, 1, 1}, "warning");
  const std::vector<FileFindings> files{{"f", "10 1 a\n", &problems}};
  const Json run = Json::parse(to_sarif(files, "1", "file:///docs"))["runs"][0];
  const Json& results = run["results"];
  REQUIRE(results.size() == kMaxSarifResults);
  CHECK(results[kMaxSarifResults - 3]["level"] == "note");
  CHECK(results[kMaxSarifResults - 2]["level"] == "error");
  CHECK(results[kMaxSarifResults - 1]["level"] == "warning");
  CHECK(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] ==
        "2 findings are not in this report");

  Diagnostics few(1);
  for (int i = 0; i < 3; ++i) few.add(rule::kOverlap, {0, 1, 1}, "error");
  const Json kept =
      Json::parse(to_sarif({{"f", "10 1 a\n", &few}}, "1", "file:///docs"))["runs"][0];
  CHECK(kept["results"].size() == 1);
  CHECK(kept["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] ==
        "2 findings are not in this report");
}

TEST_CASE("a SARIF fix of a dump keeps its records consistent", "[report]") {
  constexpr std::uint64_t kAt = 0x7f0000001000;
  const std::string code(16, '\x90');
  test::DumpBytes bytes = test::DumpBytes().header().load(1, kAt, "foo", code, 1);
  bytes.load(2, kAt + 64, "bar\xff", code, 1).move(3, kAt + 64, kAt + 256, 16, 1);
  const Jitdump dump = test::dump_of(bytes.text());
  const Diagnostics problems = test::lint_dump(bytes.text());
  const std::vector<FileFindings> files{{"jit-1.dump", dump.bytes(), &problems, &dump}};
  const Json sarif = Json::parse(to_sarif(files, "1", "file:///docs"));
  std::map<std::string, Json> replacements;
  for (const Json& one : sarif["runs"][0]["results"]) {
    if (!one.contains("fixes")) continue;
    replacements[one["ruleId"]] = one["fixes"][0]["artifactChanges"][0]["replacements"];
  }
  CHECK(replacements.size() == 2);
  // The size of the record, the index, the name, and the index in the MOVE.
  for (const std::string rule : {"JD205", "JD208"}) {
    const Json& all = replacements.at(rule);
    REQUIRE(all.size() == 4);
    CHECK(all[0]["deletedRegion"]["byteLength"] == 4);
    CHECK(all[1]["insertedContent"]["binary"] == "AgAAAAAAAAA=");
    CHECK(all[2]["insertedContent"]["binary"] == "YmFyXHhmZg==");
    CHECK(all[3] ==
          Json{{"deletedRegion", {{"byteOffset", bytes.text().size() - 8}, {"byteLength", 8}}},
               {"insertedContent", {{"binary", "AgAAAAAAAAA="}}}});
  }
}

}  // namespace perfmap::report_test
