// SPDX-License-Identifier: MIT
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"

using namespace std::string_literals;

namespace perfmap::lint_rules_test {
namespace {

using test::lint_text;
using test::places_of;

/// A map with a finding of one rule, its place, and the same map without its cause.
struct Case {
  std::string where;  // "PM004 1:1"
  std::string found;
  std::string clean;
};

const std::string kOk = "7f0000001000 10 first function\n";

std::string many(std::size_t count, const char* format) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    char line[256];
    std::snprintf(line, sizeof line, format, 0x7f0000001000 + i * 0x100, i);
    text += line;
  }
  return text;
}

const std::string kStem = "a name as long as a runtime lets names become in a ";

std::vector<Case> line_cases() {
  return {
      {"PM001 2:15", kOk + "7f0000002000 4\n", kOk + "7f0000002000 4 foo\n"},
      {"PM001 2:16", kOk + "7f0000002000 4 \n", kOk + "7f0000002000 4 foo\n"},
      {"PM002 2:1", kOk + "7g0000002000 4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM002 2:1", kOk + "17f00000000000000 4 foo\n", kOk + "07f00000000000000 4 foo\n"},
      {"PM003 2:14", kOk + "7f0000002000 4g foo\n", kOk + "7f0000002000 4f foo\n"},
      {"PM004 2:1", kOk + "0x7f0000002000 4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM004 2:14", kOk + "7f0000002000 0x4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM005 2:13", kOk + "7f0000002000  4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM005 2:15", kOk + "7f0000002000 4  foo\n", kOk + "7f0000002000 4 foo  bar\n"},
      {"PM006 2:13", kOk + "7f0000002000\t4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM006 2:13", kOk + "7f0000002000,4 foo\n", kOk + "7f0000002000 4 foo,bar\n"},
      {"PM007 2:19", kOk + "7f0000002000 4 foo\r\n", kOk + "7f0000002000 4 foo\n"},
      {"PM008 2:25", kOk + "7f0000002000 b py::sitej7fbf1fc215f9 b py::exp\n",
       kOk + "7f0000002000 b py::site j7fbf1f b py::exp\n"},
      {"PM008 2:19", kOk + "7f0000002000 b foo0x401000 0x20 bar\n",
       kOk + "7f0000002000 b foo 0x401000 + 0x20\n"},
      {"PM010 2:18", kOk + "7f0000002000 b fo\0o\n"s, kOk + "7f0000002000 b foo\n"},
      {"PM010 2:3", kOk + "7f\0000002000 b foo\n"s, kOk + "7f0000002000 b foo\n"},
      {"PM011 2:1", kOk + "\n", kOk},
      {"PM011 2:1", kOk + " \t\r\n", kOk},
      {"PM011 2:1", kOk + "# a b c\n", kOk + "7f0000002000 4 # a b c\n"},
      {"PM012 2:1", kOk + "  7f0000002000 4 foo\n", kOk + "7f0000002000 4 foo\n"},
      {"PM013 2:1", kOk + "7F0000002000 4 foo\n", kOk + "7f0000002000 4 FOO\n"},
      {"PM013 2:14", kOk + "7f0000002000 04 foo\n", kOk + "7f0000002000 0 foo\n"},
      {"PM014 2:1", kOk + "-7f0000002000 4 foo\n", kOk + "7f0000002000 4 -foo\n"},
      {"PM014 2:14", kOk + "7f0000002000 +4 foo\n", kOk + "7f0000002000 4 +foo\n"},
      {"PM015 2:1", kOk + "7f0000002000 4 " + std::string(1 << 16, 'x') + "\n",
       kOk + "7f0000002000 4 " + std::string((1 << 16) - 15, 'x') + "\n"},
      {"PM015 2:1", kOk + "DTiJ\1\0\0\0\x28\0\0\0\x3e\0\0\0\n"s, kOk + "DTiJ no binary data\n"},
      {"PM020 2:16", kOk + "7f0000002000 4 ab\n", kOk + "7f0000002000 4 abc\n"},
      {"PM021 2:316", kOk + "7f0000002000 4 " + std::string(301, 'x') + "\n",
       kOk + "7f0000002000 4 " + std::string(300, 'x') + "\n"},
      {"PM023 2:19", kOk + "7f0000002000 4 foo \n", kOk + "7f0000002000 4 foo bar\n"},
      {"PM023 2:19", kOk + "7f0000002000 4 foo \r\n", kOk + "7f0000002000 4 foo\r\n"},
      {"PM024 2:17", kOk + "7f0000002000 4 f\xffoo\n", kOk + "7f0000002000 4 f\xc3\xb6o\n"},
      {"PM025 2:17", kOk + "7f0000002000 4 f\x1b[31moo\n", kOk + "7f0000002000 4 f[31moo\n"},
      {"PM025 2:18", kOk + "7f0000002000 4 fo\x7f\n", kOk + "7f0000002000 4 fo~\n"},
      {"PM030 2:19", kOk + "7f0000002000 4 foo;bar\n", kOk + "7f0000002000 4 foo:bar\n"},
      {"PM031 2:16", kOk + "7f0000002000 4 _ZN3foo3barEv\n", kOk + "7f0000002000 4 __ZN3foo\n"},
      {"PM031 2:16", kOk + "7f0000002000 4 _RNvC3foo3bar\n", kOk + "7f0000002000 4 _Reset\n"},
      {"PM031 2:16", kOk + "7f0000002000 4 $s4main3fooyyF\n",
       kOk + "7f0000002000 4 $string:to_upper/1\n"},
      {"PM032 2:19", kOk + "7f0000002000 4 foo->bar\n", kOk + "7f0000002000 4 foo>bar-\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 0x7f12\n", kOk + "7f0000002000 4 0x7f12+foo\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 7f12ab34\n", kOk + "7f0000002000 4 e2e\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 1234\n", kOk + "7f0000002000 4 facade\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 unknown\n", kOk + "7f0000002000 4 unknown()\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 (null)\n", kOk + "7f0000002000 4 (null\n"},
      {"PM034 2:16", kOk + "7f0000002000 4 <unknown>\n", kOk + "7f0000002000 4 <unknown> x\n"},
      {"PM035 2:18", kOk + "7f0000002000 4 fo\xe2\x80\xaeo\n",
       kOk + "7f0000002000 4 fo\xe2\x80\xa6o\n"},
      {"PM035 2:18", kOk + "7f0000002000 4 fo\xc2\x9b!\n", kOk + "7f0000002000 4 fo\xc2\xa7!\n"},
      {"PM106 2:14", kOk + "7f0000002000 0 foo\n", kOk + "7f0000002000 1 foo\n"},
      {"PM107 2:14", kOk + "7f0000002000 4000001 foo\n", kOk + "7f0000002000 4000000 foo\n"},
      {"PM108 2:18", kOk + "fffffffffffffff0 11 foo\n", kOk + "fffffffffffffff0 f foo\n"},
      {"PM109 1:1", "ffff 10 foo\n" + kOk, "10000 10 foo\n" + kOk},
      {"PM109 2:1", kOk + "100000000000000 10 foo\n", kOk + "ffffffffffffff 10 foo\n"},
  };
}

std::vector<Case> map_cases() {
  const std::string cut = kOk + many(8, ("%zx 10 " + kStem + "%03zu\n").c_str());
  const std::string same = many(101, "%zx 10 the same name\n");
  const std::string decimal = many(16, "%zx 256 f%zu\n");
  const std::string reused = many(90, "%zx 10 f%zu\n") + many(10, "%zx 10 g%zu\n");
  const std::string builtins = many(10, "%zx 10 Builtin:F%zu\n");
  const std::string stubs = many(10, "%zx 10 stub<%zu> GenerateDispatchStub<owner>\n");
  const std::string python = many(10, "%zx b py::f%zu:/a.py\n");
  const std::string scripts = many(10, "%zx 10 JS:*f%zu /a.js:1:1\n");
  const std::string unmarked = many(9, "%zx 10 function %zu\n");
  return {
      {"PM009 1:31", kOk.substr(0, kOk.size() - 1), kOk},
      {"PM022 2:70", cut, cut + "7f0000009000 10 " + kStem + "much longer name\n"},
      {"PM033 1:17", same, same.substr(same.find('\n') + 1)},
      {"PM068 1:1", "", kOk},
      {"PM069 1:1", "\xef\xbb\xbf" + kOk, kOk},
      {"PM069 1:1",
       "\xff\xfe"
       "7\0f\0 \0"s,
       kOk},
      {"PM090 1:1", builtins, builtins + "7f0000009000 10 JS:*f /a.js:1:1\n"},
      {"PM090 1:1", builtins, builtins.substr(builtins.find('\n') + 1)},
      {"PM093 1:1", stubs, stubs + "7f0000009000 10 void [A] N.T::M()[Tier1]\n"},
      {"PM093 1:1", stubs, stubs.substr(stubs.find('\n') + 1)},
      {"PM095 11:1", python + unmarked + kOk, python + unmarked},
      {"PM095 11:1", scripts + unmarked + kOk, builtins + unmarked + kOk},
      {"PM101 2:1", kOk + "7f0000001000 20 second\n", kOk + "7f0000001010 20 second\n"},
      {"PM102 2:1", kOk + kOk, kOk + "7f0000001000 11 first function\n"},
      {"PM103 2:1", kOk + "7f0000001008 20 second\n", kOk + "7f0000001008 8 second\n"},
      {"PM104 2:1", kOk + "7f0000001008 8 second\n", kOk + "7f0000001008 9 second\n"},
      {"PM104 2:1", kOk + "7f0000001000 11 first function\n", kOk + kOk},
      {"PM105 1:1", "7f0000001004 4 old\n" + kOk, kOk + "7f0000001004 4 new\n"},
      {"PM110 1:1", decimal, decimal + "7f0000009000 2a0 foo\n"},
      {"PM113 2:1", kOk + "7f0000000ff0 10 foo\n", kOk + "7f0000001010 10 foo\n"},
      {"PM114 1:1", reused, reused.substr(0, reused.rfind('\n', reused.size() - 2) + 1)},
  };
}

std::string rule_of(const Case& one) { return one.where.substr(0, 5); }

void check_case(const Case& one, const std::string& suffix) {
  CAPTURE(one.where, one.found.substr(0, 200));
  const std::string rule = rule_of(one);
  CHECK(places_of(lint_text(one.found + suffix), rule).at(0) == one.where);
  CHECK(places_of(lint_text(one.clean + suffix), rule).empty());
}

/// Clean lines, longer than the vector code's reach, so that a line is not one of the last of a
/// text.
const std::string kSuffix =
    "7fffff001000 10 a function that lies behind\n7fffff002000 10 another one, and long enough\n";

}  // namespace

TEST_CASE("each rule about lines and names reports its byte, and nothing without its cause",
          "[lint]") {
  for (const Case& one : line_cases()) {
    check_case(one, "");
    check_case(one, kSuffix);
  }
}

TEST_CASE("each rule about whole maps reports its place, and nothing without its cause", "[lint]") {
  for (const Case& one : map_cases()) check_case(one, "");
}

TEST_CASE("each rule about maps that needs no file has a case", "[lint]") {
  std::set<std::string> tried;
  for (const Case& one : line_cases()) tried.insert(rule_of(one));
  for (const Case& one : map_cases()) tried.insert(rule_of(one));
  const std::set<std::string> want_a_file{"PM060", "PM061", "PM062", "PM063", "PM064",
                                          "PM065", "PM066", "PM067", "PM070", "PM091",
                                          "PM092", "PM094", "PM111", "PM112"};
  for (const Rule* rule : rule::all()) {
    const std::string id(rule->id);
    if (!id.starts_with("PM")) continue;
    CAPTURE(id);
    CHECK(tried.contains(id) != want_a_file.contains(id));
  }
}

TEST_CASE("a portable map has no findings", "[lint]") {
  CHECK(places_of(lint_text(kOk + "7f0000001010 1 日本語 a(b, c) [d] <e> /a b.js:1:2\n")).empty());
}

TEST_CASE("a NUL byte is one finding, not also a control character", "[lint]") {
  const auto places = places_of(lint_text(kOk + "7f0000002000 b fo\0o\n"s + kSuffix));
  CHECK(places == std::vector<std::string>{"PM010 2:18"});
}

TEST_CASE("a conflict names the other line", "[lint]") {
  const Diagnostics found = lint_text(kOk + "7f0000001008 20 second\n");
  REQUIRE(found.items().size() == 1);
  CHECK(found.items()[0].message == "overlaps 'first function' of line 1");
  CHECK(found.items()[0].related_line == 1);
}

TEST_CASE("a shadowed entry names a line that hides it", "[lint]") {
  const Diagnostics found = lint_text("7f0000001000 8 old\n" + kOk);
  REQUIRE(places_of(found, "PM105") == std::vector<std::string>{"PM105 1:1"});
  CHECK(found.items()[0].related_line == 2);
}

TEST_CASE("a long name in a message is truncated between two characters", "[lint]") {
  std::string name(119, 'x');
  name += "日本";
  const Diagnostics found = lint_text("7f0000001000 8 " + name + "\n7f0000001004 8 second\n");
  CHECK(places_of(found) == std::vector<std::string>{"PM103 2:1"});
  CHECK(found.items()[0].message == "overlaps '" + name.substr(0, 119) + "' of line 1");
}

TEST_CASE(
    "eight lines with one long name are not reported as truncated, nor are names of one length",
    "[lint]") {
  const std::string longest = kStem + "001\n";
  std::string same = kOk;
  for (int i = 0; i < 8; ++i) same += "7f000000" + std::to_string(3000 + i * 100) + " 4 " + longest;
  CHECK(places_of(lint_text(same), "PM022").empty());
  CHECK(places_of(lint_text(many(20, ("%zx 10 " + kStem + "%03zu\n").c_str())), "PM022").empty());
}

TEST_CASE("findings are in the order of lines, across rules", "[lint]") {
  const auto places = places_of(lint_text("7f0000002000 0x4 foo\n\n7f0000001000 4 a;b\n"));
  CHECK(places == std::vector<std::string>{"PM004 1:14", "PM011 2:1", "PM113 3:1", "PM030 3:17"});
}

TEST_CASE("an ignored rule is neither kept nor counted", "[lint]") {
  Diagnostics problems(0);
  problems.ignore(rule::kHexPrefix);
  lint(Map(Input::from_text("0x7f0000002000 4 a;b\n", "test.map")), problems);
  CHECK(places_of(problems) == std::vector<std::string>{"PM030 1:19"});
  CHECK(problems.total() == 1);
}

TEST_CASE("all findings are counted, but only a limited number per rule is kept", "[lint]") {
  Diagnostics problems(3);
  lint(Map(Input::from_text(many(50, "%zx 0x10 f%zu\n"), "test.map")), problems);
  CHECK(problems.items().size() == 3 + 3);  // f0 to f9 are also short names
  CHECK(problems.count_of(rule::kHexPrefix) == 50);
  CHECK(problems.count_of(rule::kShortName) == 10);
}

TEST_CASE("a last line that may still grow is not checked", "[lint]") {
  Diagnostics problems(0);
  lint(Map(Input::from_text(kOk + "7f00", "test.map"), {.growing = true}), problems);
  CHECK(places_of(problems).empty());
}

TEST_CASE("hundreds of thousands of identical or nested ranges are all checked", "[lint]") {
  std::string identical;
  std::string nested;
  constexpr std::uint64_t kCount = 200'000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "7f0000001000 10 name%zx\n", static_cast<std::size_t>(i));
    identical += line;
    std::snprintf(line, sizeof line, "%zx %zx name\n", static_cast<std::size_t>(0x7f0000000000 + i),
                  static_cast<std::size_t>(2 * (kCount - i)));
    nested += line;
  }
  for (const auto& [text, rule] :
       {std::pair(&identical, &rule::kReusedStart), std::pair(&nested, &rule::kNested)}) {
    Diagnostics problems(1);
    lint(Map(Input::from_text(*text, "test.map")), problems);
    CHECK(problems.count_of(*rule) == kCount - 1);
  }
}

TEST_CASE("each rule has an explanation", "[lint]") {
  for (const Rule* rule : rule::all()) {
    CAPTURE(rule->id);
    CHECK(rule->explanation.size() > 40);
  }
}

}  // namespace perfmap::lint_rules_test
