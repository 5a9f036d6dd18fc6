// SPDX-License-Identifier: MIT
#include <algorithm>

#include "support/catch.hpp"
#include "support/frame_bytes.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::dump_wild_test {
namespace {

using test::DumpBytes;
using test::lint_dump;
using test::places_of;

constexpr std::uint64_t kAt = 0x7f0000001000;
const std::string kCode(16, '\x90');

}  // namespace

TEST_CASE("line addresses of V8 and LLVM, which are 0x40 too high, are one finding",
          "[lint][jitdump]") {
  const auto findings = [](std::uint32_t padding, std::uint64_t first) {
    DumpBytes dump;
    dump.header({.pad1 = padding});
    for (std::uint64_t i = 1; i <= 2; ++i) {
      const std::uint64_t at = kAt + 0x1000 * i;
      dump.debug_info(i, at, {{at + first, 1, 1, "a.js"}, {at + 0x50, 2, 1, "a.js"}}, 5)
          .load(i, at, "f", kCode, i);
    }
    const Diagnostics problems = lint_dump(dump.text());
    std::vector<std::string> found;
    for (const Diagnostic& one : problems.items()) {
      found.push_back(std::string(one.rule->id) + " " + one.message);
    }
    return found;
  };
  CHECK(findings(JitdumpHeader::kV8Padding, 0x42) ==
        std::vector<std::string>{"JD217 all addresses of source lines are 0x40 too high, as V8 "
                                 "writes them: perfmap takes 0x40 off"});
  CHECK(findings(0, 0x40) ==
        std::vector<std::string>{"JD217 all addresses of source lines are 0x40 too high, as LLVM "
                                 "writes them: perfmap takes 0x40 off"});
  CHECK(findings(0, 0x42).size() == 2);
  CHECK(findings(0, 0x42)[0].starts_with("JD211 line entry 1 of 2"));
}

TEST_CASE("file names that V8 freed are one finding", "[lint][jitdump]") {
  const std::string freed =
      std::string("\xb6\xd1\xca\r\0\0\0\0\xe0\x82\xa0'\xcfH\xc0g", 16) + ".js";
  DumpBytes dump;
  dump.header({.pad1 = JitdumpHeader::kV8Padding});
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t at = kAt + 0x1000 * i;
    dump.debug_info(10 + i, at, {{at + 0x40, 1, 1, freed}, {at + 0x48, 2, 1, freed}}, 3);
    dump.load(10 + i, at, "JS:*f /home/user/app/index.js:1:1", kCode, i + 1);
  }
  // Its second line is not in the function.
  dump.debug_info(20, kAt + 0x8000, {{kAt + 0x8040, 1, 1, "a.js"}, {kAt, 2, 1, "a.js"}}, 5);
  dump.load(20, kAt + 0x8000, "JS:*g a.js:1:1", kCode, 9);
  const Diagnostics problems = lint_dump(dump.text());
  CHECK(places_of(problems).size() == 3);
  CHECK(std::ranges::count_if(problems.items(), [](const Diagnostic& one) {
          return one.message ==
                 "source lines of 3 of 4 functions have file names that V8 had freed before it "
                 "wrote them (these are the first): perf loses such lines, perfmap restores them";
        }) == 1);
}

TEST_CASE("V8's unwinding header without frames is valid", "[lint][jitdump]") {
  const std::string stub = "\x01\x1b\x03\x3b" + std::string(16, '\0');
  DumpBytes dump;
  dump.header().unwinding(1, stub, 20, 0, 4).load(1, kAt + 4, "f", kCode);
  CHECK(places_of(lint_dump(dump.text())).empty());
}

TEST_CASE("a truncated last record is the only finding", "[lint][jitdump]") {
  const std::string whole = DumpBytes().header().load(1, kAt, "f", kCode).text();
  const std::string second = DumpBytes().load(2, kAt + 64, "g", kCode, 2).text();
  for (std::size_t cut = 1; cut < second.size(); ++cut) {
    CAPTURE(cut);
    CHECK(places_of(lint_dump(whole + second.substr(0, cut))) ==
          std::vector<std::string>{"JD201 +0x72"});
  }
}

TEST_CASE("a million loads over one page are all checked", "[lint][jitdump]") {
  DumpBytes dump;
  dump.header();
  constexpr std::uint64_t kCount = 1'000'000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    dump.load(i + 1, kAt + i % 4096, "f", {}, i % 1000);
  }
  Diagnostics problems(1);
  lint(test::dump_of(dump.text()), problems);
  CHECK(problems.count_of(rule::kReusedIndex) == kCount - 1000);
  CHECK(problems.count_of(rule::kOverlappingCode) == 1);
  CHECK(problems.items().size() == 4);  // and JD206, JD307
}

}  // namespace perfmap::dump_wild_test
