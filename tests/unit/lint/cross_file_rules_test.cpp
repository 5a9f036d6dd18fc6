// SPDX-License-Identifier: MIT
#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::cross_file_rules_test {
namespace {

using test::DumpBytes;
using Places = std::vector<std::string>;

constexpr std::uint64_t kAt = 0x7000001000;
const std::string kCode(16, '\x90');
const std::string kMap = "7000001000 10 first\n7000002000 10 second\n";

DumpBytes first_and_second() {
  return DumpBytes()
      .header()
      .load(1, kAt, "first", kCode, 1)
      .load(2, kAt + 0x1000, "second", kCode, 2);
}

struct File {
  std::string name;
  std::string bytes;
};

/// Findings of lint_together(), by file. A file is a map unless it has a jitdump's magic number.
std::vector<Places> lint_files(const std::vector<File>& files) {
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
  std::vector<Diagnostics> problems(files.size(), Diagnostics(0));
  std::vector<LintedFile> linted(files.size());
  maps.reserve(files.size());
  dumps.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    Input input = Input::from_text(files[i].bytes, files[i].name);
    linted[i].problems = &problems[i];
    if (files[i].bytes.starts_with("DTiJ") || files[i].bytes.starts_with("JiTD")) {
      linted[i].dump = &dumps.emplace_back(std::move(input));
    } else {
      linted[i].map = &maps.emplace_back(std::move(input));
    }
  }
  lint_together(linted);
  std::vector<Places> places;
  for (const Diagnostics& one : problems) places.push_back(test::places_of(one));
  return places;
}

std::vector<Places> pair(const std::string& map, const DumpBytes& dump) {
  return lint_files({{"a.map", map}, {"b.dump", dump.text()}});
}

}  // namespace

TEST_CASE("a map and a dump that agree have no findings", "[lint][together]") {
  CHECK(pair(kMap, first_and_second()) == std::vector<Places>{{}, {}});
  CHECK(lint_files({{"b.dump", first_and_second().text()}, {"a.map", kMap}}) ==
        std::vector<Places>{{}, {}});
}

TEST_CASE("different names for a range are reported at the map's line", "[lint][together]") {
  CHECK(pair("7000001000 10 first\n7000002000 10 other\n", first_and_second()) ==
        std::vector<Places>{{"XF001 2:1"}, {}});
}

TEST_CASE("names of the dump are compared as escaped for maps", "[lint][together]") {
  const DumpBytes dump = DumpBytes().header().load(1, kAt, "f\xff\n", kCode);
  CHECK(pair("7000001000 10 f\\xff\\x0a\n", dump) == std::vector<Places>{{}, {}});
}

TEST_CASE("code that only one of them has is reported there", "[lint][together]") {
  CHECK(pair(kMap + "7000003000 10 third\n", first_and_second()) ==
        std::vector<Places>{{"XF002 3:1"}, {}});
  CHECK(pair("7000001000 10 first\n", first_and_second()) ==
        std::vector<Places>{{}, {"XF002 +0x76"}});
}

TEST_CASE("V8's bytecode is only in the map", "[lint][together]") {
  CHECK(pair(kMap + "30000 10 JS:~read app.js:1:1\n", first_and_second()) ==
        std::vector<Places>{{}, {}});
  CHECK(pair(kMap + "7000003000 10 JS:*read app.js:1:1\n", first_and_second()) ==
        std::vector<Places>{{"XF002 3:1"}, {}});
  // What the dump has at bytecode's address is code with another name.
  CHECK(pair("7000001000 10 JS:~read app.js:1:1\n7000002000 10 second\n", first_and_second()) ==
        std::vector<Places>{{"XF001 1:1"}, {}});
}

TEST_CASE("both are compared as they are at their end", "[lint][together]") {
  DumpBytes dump = DumpBytes().header().load(1, kAt, "old", kCode, 1).load(2, kAt, "new", kCode, 2);
  dump.move(3, kAt, kAt + 0x1000, 16, 2);
  CHECK(pair("7000002000 10 old\n7000002000 10 new\n", dump) == std::vector<Places>{{}, {}});
}

TEST_CASE("a neighbour with another name that overlaps a range is not reported",
          "[lint][together]") {
  CHECK(pair("7000001000 14 first\n7000001010 10 second\n",
             DumpBytes()
                 .header()
                 .load(1, kAt, "first", kCode, 1)
                 .load(2, kAt + 0x10, "second", kCode, 2)) == std::vector<Places>{{}, {}});
}

TEST_CASE("files are matched by process", "[lint][together]") {
  const std::string dump = first_and_second().text();
  const std::string other = "7000001000 10 x\n7000002000 10 second\n";
  const Places conflict{"XF001 1:1"};
  CHECK(lint_files({{"/tmp/perf-42.map", other}, {"jit-42.dump", dump}})[0] == conflict);
  CHECK(lint_files({{"/tmp/perf-43.map", other}, {"jit-42.dump", dump}})[0].empty());
  CHECK(lint_files({{"perf-42.map", other}, {"perf-43.map", other}, {"copy", dump}}) ==
        std::vector<Places>{conflict, {}, {}});
  CHECK(lint_files(
            {{"/proc/42/root/tmp/perf-1.map", other}, {"x", kMap}, {"jit-42.dump", dump}})[0] ==
        conflict);
  CHECK(lint_files({{"perf-42.map", other}, {"jit-42.dump", dump}, {"b/jit-42.dump", dump}})[0]
            .empty());
  // Names that only resemble a map's name have no pid.
  CHECK(lint_files({{"copy-43.map", other}, {"jit-42.dump", dump}})[0] == conflict);
  CHECK(lint_files({{"perf-43.map.old", other}, {"jit-42.dump", dump}})[0] == conflict);
}

TEST_CASE("two maps of one process are reported at the second", "[lint][together]") {
  CHECK(lint_files({{"/proc/42/root/tmp/perf-1.map", kMap}, {"/tmp/perf-42.map", kMap}}) ==
        std::vector<Places>{{}, {"XF003 1:1"}});
  CHECK(lint_files({{"/tmp/perf-42.map", kMap}, {"/tmp/perf-42.map", kMap}}) ==
        std::vector<Places>{{}, {}});
  CHECK(lint_files({{"/proc/8/root/tmp/perf-1.map", kMap},
                    {"/proc/9/root/tmp/perf-1.map", kMap}}) == std::vector<Places>{{}, {}});
}

}  // namespace perfmap::cross_file_rules_test
