// SPDX-License-Identifier: MIT
// Real dumps, compared with the output of perf.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/resolver.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"
#include "support/written.hpp"

namespace perfmap::wild_dump_test {
namespace {

std::string wild(const std::string& name) { return test::tests_dir("/wild/" + name); }

Jitdump dump_of(const std::string& name) {
  Result<Input> input = Input::open(wild(name));
  REQUIRE(input);
  return Jitdump(*std::move(input));
}

Resolver resolver_of(Jitdump dump) {
  Diagnostics problems(1);
  std::vector<Jitdump> dumps;
  dumps.push_back(std::move(dump));
  Resolver resolver({}, std::move(dumps), Overlap::last, problems, problems);
  CHECK(problems.total() == 0);
  return resolver;
}

/// Undoes the escapes of tests/wild/README.md; these files contain only escaped backslashes.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

const std::vector<std::string> kDumps = {"683", "3021"};

}  // namespace

TEST_CASE("each JIT sample has the name that perf inject and perf script give it at its time",
          "[wild]") {
  const std::string pid = GENERATE(from_range(kDumps));
  const Resolver resolver = resolver_of(dump_of("node/jit-" + pid + "-samples.dump"));
  std::ifstream truth(wild("node/inject-" + pid + ".tsv"));
  std::string line;
  std::getline(truth, line);
  std::size_t rows = 0;
  for (; std::getline(truth, line); ++rows) {
    CAPTURE(line);
    std::istringstream fields(line);
    std::string time;
    std::string ip;
    std::string symbol;
    std::getline(fields, time, '\t');
    std::getline(fields, ip, '\t');
    std::getline(fields, symbol, '\t');
    const Resolution answer = resolver.find({*parse_hex(ip), std::stoull(time)});
    REQUIRE(answer.found);
    CHECK(answer.found->name == unescaped(symbol));
  }
  CHECK(rows >= 200);
}

TEST_CASE("real dumps are read without loss, and survive conversion to JSON and merging",
          "[wild]") {
  const std::string pid = GENERATE(from_range(kDumps));
  const Jitdump dump = dump_of("node/jit-" + pid + "-samples.dump");
  Diagnostics problems(1);
  Jitdump::Reader reader(dump);
  std::size_t records = 0;
  while (reader.next(problems)) ++records;
  CHECK(records >= 54);
  CHECK(reader.lost_bytes() == 0);
  const std::string json =
      test::written([&](OutputFile& out) { write_dump_json(dump, out, problems, true); });
  const Result<JitdumpBytes> back = dump_from_json(json);
  REQUIRE(back);
  CHECK(back->bytes == dump.bytes());
  const std::string merged = test::written([&](OutputFile& out) {
    const std::vector<Jitdump> twice = {dump, dump};
    const auto stats = merge_dumps(twice, out, problems);
    REQUIRE(stats);
    CHECK(stats->loads == stats->duplicates);
  });
  CHECK(merged.size() == dump.bytes().size());
  CHECK(problems.total() == 0);
}

}  // namespace perfmap::wild_dump_test
