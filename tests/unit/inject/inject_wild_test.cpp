// SPDX-License-Identifier: MIT
#include <fstream>
#include <sstream>

#include "support/injected.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::test::inject_wild_test {
namespace {

/// Escapes a name as in tests/wild.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '\\' ? "\\\\" : std::string(1, c);
  return text;
}

}  // namespace

TEST_CASE("a rewritten recording contains everything of the original", "[inject][wild]") {
  const std::string name =
      GENERATE("two-events", "compressed", "pipe", "namespaces", "killed", "cut", "group");
  CAPTURE(name);
  const std::string old = read_file(test::tests_dir("/wild/recordings/" + name + "/perf.data"));
  const RecordingContents before = read_all(old);
  const Injected made(old, {});
  const RecordingContents& after = made.contents;

  REQUIRE(after.records.size() == before.records.size());
  for (std::size_t i = 0; i < after.records.size(); ++i) {
    REQUIRE(after.records[i].bytes == before.records[i].bytes);
  }
  CHECK(after.lost_bytes == 0);
  CHECK(after.events.size() == before.events.size());
  CHECK(after.events[0].name == before.events[0].name);
  CHECK(after.facts.hostname == before.facts.hostname);
  CHECK(after.facts.build_ids.size() == before.facts.build_ids.size());
  CHECK(after.facts.is_pipe == before.facts.is_pipe);
  CHECK_FALSE(after.facts.is_compressed);
}

TEST_CASE("samples of Node.js code resolve to perf's names or to the program's file",
          "[inject][wild]") {
  const std::string wild = test::tests_dir("/wild/node/");
  const Injected made(read_file(wild + "perf-683.data"), {read_file(wild + "jit-683-samples.dump")},
                      true);
  std::ifstream truth(wild + "inject-683.tsv");
  std::string line;
  std::getline(truth, line);
  std::size_t rows = 0;
  std::size_t builtins = 0;
  while (std::getline(truth, line) && rows < 60) {  // each reads the ELF file
    CAPTURE(line);
    std::istringstream fields(line);
    std::uint64_t time = 0;
    Address ip = 0;
    std::string name;
    fields >> time >> std::hex >> ip >> std::ws;
    std::getline(fields, name);
    const bool is_builtin = ip < 0x10000000;  // where node's own file is mapped
    CHECK(escaped(made.name_at(ip, time)) == (is_builtin ? "/usr/bin/node" : name));
    builtins += is_builtin ? 1 : 0;
    ++rows;
  }
  CHECK(rows == 60);
  CHECK(builtins == 9);
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].is_recorded);
}

TEST_CASE("a dump of a process that the recording does not have is reported", "[inject][wild]") {
  const std::string wild = test::tests_dir("/wild/node/");
  const Injected made(read_file(wild + "perf-683.data"),
                      {read_file(wild + "jit-3021-samples.dump")}, true);
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].pid == 3021);
  CHECK_FALSE(made.report.dumps[0].is_recorded);
}

}  // namespace perfmap::test::inject_wild_test
