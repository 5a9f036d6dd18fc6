// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "perfmap/lint.hpp"
#include "perfmap/report.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/lint_findings.hpp"

using namespace std::string_literals;

namespace perfmap::dump_fix_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kAt = 0x7f0000001000;
const std::string kCode(16, '\x90');

Lines changes_of(const std::string& bytes) {
  Lines lines;
  for_each_change(dump_of(bytes), [&](const DumpChange& change) {
    std::string line = to_text(change, "d");
    line.pop_back();
    lines.push_back(line);
  });
  return lines;
}

std::string fixed(const DumpBytes& dump) { return fixed_dump(dump_of(dump.text())); }

DumpBytes header(std::endian order = std::endian::native) { return DumpBytes(order).header(); }

}  // namespace

TEST_CASE("reserved flags are cleared, and the defined one is kept", "[lint][jitdump]") {
  const DumpBytes dump = DumpBytes().header({.flags = 7}).load(1, kAt, "f", kCode);
  CHECK(fixed(dump) == DumpBytes().header({.flags = 1}).load(1, kAt, "f", kCode).text());
  CHECK(changes_of(dump.text()) == Lines{"d:+0x20: flags 0x7 become 0x1 [JD105]"});
}

TEST_CASE("names that readers cannot show are escaped as in perf maps, in either byte order",
          "[lint][jitdump]") {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    DumpBytes dump = header(order).load(1, kAt, "", kCode).load(2, kAt + 64, "f\xffoo", kCode, 2);
    DumpBytes expected =
        header(order).load(1, kAt, "[?]", kCode).load(2, kAt + 64, "f\\xffoo", kCode, 2);
    CHECK(fixed(dump) == expected.text());
  }
}

TEST_CASE("a reused index is replaced by an unused one", "[lint][jitdump]") {
  DumpBytes dump = header().load(1, kAt, "f", kCode, 1).load(2, kAt + 64, "g", kCode, 1);
  dump.load(3, kAt + 128, "h", kCode, 2).load(4, kAt + 192, "i", kCode, 2);
  DumpBytes expected = header().load(1, kAt, "f", kCode, 1).load(2, kAt + 64, "g", kCode, 3);
  expected.load(3, kAt + 128, "h", kCode, 2).load(4, kAt + 192, "i", kCode, 4);
  CHECK(fixed(dump) == expected.text());
}

TEST_CASE("a MOVE gets the new index of the code that it moves", "[lint][jitdump]") {
  const auto dump = [](std::uint64_t second) {
    DumpBytes bytes = header().load(1, kAt, "f", kCode, 1).load(2, kAt + 64, "g", kCode, second);
    bytes.move(3, kAt + 64, kAt + 256, 16, second).move(4, kAt, kAt + 128, 16, 1);
    return bytes.move(5, kAt + 256, kAt, 16, second);
  };
  CHECK(fixed(dump(1)) == dump(2).text());
  const Lines changes = changes_of(dump(1).text());
  CHECK(changes.size() == 3);  // not the MOVE whose code keeps its index
  for (const std::string& change : changes) {
    CHECK(change.find("code index 1 becomes 2") != std::string::npos);
  }
}

TEST_CASE("a MOVE of unknown code keeps its index, and no other code gets it", "[lint][jitdump]") {
  DumpBytes dump = header().move(0, kAt + 8, kAt, 16, 2).load(1, kAt, "f", kCode, 1);
  DumpBytes expected = dump;
  dump.load(2, kAt + 64, "g", kCode, 1);
  expected.load(2, kAt + 64, "g", kCode, 3);
  CHECK(fixed(dump) == expected.text());
}

TEST_CASE("alignment bytes are removed, and the record's size is adjusted", "[lint][jitdump]") {
  DumpBytes dump = header().prefix(0, 58 + 16 + 3, 1).u32(42).u32(43).u64(kAt).u64(kAt);
  dump.u64(16).u64(1).raw("f\0"s + kCode + "\0\0\0"s).close(2);
  CHECK(fixed(dump) == header().load(1, kAt, "f", kCode).close(2).text());
  CHECK(changes_of(dump.text()) == Lines{"d:+0x2c: record size 77 becomes 74 [JD305]",
                                         "d:+0x72: 3 bytes after the code removed [JD305]"});
}

TEST_CASE("everything else is unchanged, byte for byte", "[lint][jitdump]") {
  DumpBytes dump = DumpBytes().header({.total_size = 44, .flags = 2}).raw("more");
  DumpBytes expected = DumpBytes().header({.total_size = 44}).raw("more");
  for (DumpBytes* bytes : {&dump, &expected}) {
    bytes->debug_info(9, kAt, {{kAt, 0, 0, "a"}}, 5).load(5, kAt, "late", kCode, 7);
    bytes->prefix(77, 24, 3).u64(5).close(4).load(6, kAt, "behind", {}, 8).raw("torn");
  }
  CHECK(fixed(dump) == expected.text());
}

TEST_CASE("a text that is not a jitdump, and a jitdump without faults, are unchanged",
          "[lint][jitdump]") {
  for (const std::string& text :
       {""s, "7f00 10 foo\n"s, header().text(), header().load(1, kAt, "f", kCode).text()}) {
    CHECK(fixed_dump(dump_of(text)) == text);
    CHECK(changes_of(text).empty());
  }
}

TEST_CASE("bytes that a forked child wrote twice are read the same way after a fix",
          "[lint][jitdump]") {
  const std::string tail =
      DumpBytes().load(2, kAt + 64, "g\xff", kCode, 2).load(3, kAt + 128, "h", kCode, 3).text();
  DumpBytes dump = DumpBytes().header({.flags = 2}).load(1, kAt, "f", kCode, 1).raw(tail);
  dump.raw(tail.substr(10)).load(4, kAt + 192, "i", kCode, 4);
  std::string expected = dump.text();
  expected[0x20] = 0;
  CHECK(fixed(dump) == expected);
  CHECK(fixed_dump(dump_of(expected)) == expected);
}

}  // namespace perfmap::dump_fix_test
