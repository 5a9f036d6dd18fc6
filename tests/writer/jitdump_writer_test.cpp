// SPDX-License-Identifier: MIT
// The bytes that the jitdump writer produces, and what it refuses.

#include <elf.h>
#include <string>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::Contents;
using test::contents_of;
using test::DumpBytes;
using test::function_of;
using test::now;
using test::quiet;
using test::read_file;
using test::Scratch;

}  // namespace

TEST_CASE("records have the layout of perf's structs", "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "jit-42.dump";
  const std::uint64_t before = now();
  const std::vector<LineRecord> lines = {{0x7f0000001000, 3, 7, "/src/a.js", false},
                                         {0x7f0000001004, 4, 0, "/src/a.js", false}};
  {
    auto writer = JitdumpWriter::open(path, {.marker = false});
    REQUIRE(writer);
    const auto first = writer->load({.start = 0x7f0000001000,
                                     .size = 6,
                                     .name = "first",
                                     .code = "abcdef",
                                     .lines = lines,
                                     .unwinding = {"frame", "header", 16},
                                     .time = 1000});
    REQUIRE(first);
    CHECK(*first == 1);
    CHECK(writer->load({.start = 8, .size = 0, .name = "empty", .time = 1001}).value() == 2);
    REQUIRE(writer->move(1, 0x7f0000001000, 0x7f0000002000, 6));
    REQUIRE(writer->close());
  }
  const std::string bytes = read_file(path);
  const Jitdump dump(Input::from_text(bytes, path));
  REQUIRE(dump.header());
  CHECK(dump.header()->timestamp >= before);
  CHECK(dump.header()->timestamp <= now());
#ifdef __x86_64__
  CHECK(dump.header()->elf_mach == EM_X86_64);
#endif
  const Contents contents = contents_of(path);
  REQUIRE(contents.records.size() == 6);
  const std::uint64_t moved = contents.records[4].time;
  const std::uint64_t closed = contents.records[5].time;
  CHECK(moved >= before);
  CHECK(closed >= moved);
  DumpBytes expected;
  expected.header({.elf_mach = dump.header()->elf_mach, .timestamp = dump.header()->timestamp});
  // Padded to a multiple of 8; the record's size includes the padding.
  expected.debug_info(1000, 0x7f0000001000,
                      {{0x7f0000001000, 3, 7, "/src/a.js"}, {0x7f0000001004, 4, 0, "/src/a.js"}},
                      4);
  expected.unwinding(1000, "frameheader", 6, 16, 5);
  expected.prefix(0, 56 + 6 + 6, 1000).u32(42).u32(42).u64(0x7f0000001000).u64(0x7f0000001000);
  expected.u64(6).u64(1).raw({"first\0abcdef", 12});
  expected.prefix(0, 56 + 6, 1001).u32(42).u32(42).u64(8).u64(8).u64(0).u64(2).raw({"empty\0", 6});
  expected.prefix(1, 64, moved).u32(42).u32(42).u64(0x7f0000002000).u64(0x7f0000001000);
  expected.u64(0x7f0000002000).u64(6).u64(1).close(closed);
  CHECK(bytes == expected.text());
}

TEST_CASE("invalid functions are refused, and nothing is written", "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "x.dump";
  auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(writer);
  const std::vector<LineRecord> before = {{0xfff, 1, 0, "f", false}};
  const std::vector<LineRecord> after = {{0x1031, 1, 0, "f", false}};
  const std::vector<LineRecord> falling = {{0x1004, 1, 0, "f", false}, {0x1000, 2, 0, "f", false}};
  std::vector<JitFunction> wrong(6, function_of("name"));
  wrong[0].lines = before;
  wrong[1].lines = after;
  wrong[2].lines = falling;
  wrong[3].size = 5;
  wrong[4].unwinding = {"frame", "header", 10};
  wrong[5].start = UINT64_MAX - 10;
  for (const JitFunction& function : wrong) {
    const auto result = writer->load(function);
    REQUIRE(!result);
    CHECK(result.error().code == Errc::invalid_argument);
  }
  CHECK(writer->load({.start = 0x1000, .size = 33u << 20, .name = "x"}).error().sys_errno ==
        EINVAL);
  CHECK(read_file(path).size() == JitdumpHeader::kSize);
}

TEST_CASE("names are escaped as in maps, or refused", "[writer][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer);
  REQUIRE(writer->load(function_of("two\nlines")));
  REQUIRE(writer->load(function_of("f")));
  REQUIRE(writer->load(function_of({"nul\0x", 5})));
  CHECK(contents_of(scratch / "x.dump").names() ==
        std::vector<std::string>{"two\\x0alines", "[f]", "nul\\x00x"});
  JitdumpOptions strict = quiet();
  strict.names = NamePolicy::refuse;
  auto other = JitdumpWriter::open(scratch / "y.dump", strict);
  CHECK(other->load(function_of("two\nlines")).error().sys_errno == EILSEQ);
}

TEST_CASE("omitted code is written as zeros, because perf expects as many bytes as the size says",
          "[writer][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  for (const std::uint64_t size : {1u, 65536u, 65537u, 32u << 20}) {
    REQUIRE(writer->load({.start = 0x1000, .size = size, .name = "unknown"}));
  }
  const Contents contents = contents_of(scratch / "x.dump");
  REQUIRE(contents.records.size() == 4);
  CHECK(contents.records[2].code == std::string(65537, '\0'));
  CHECK(contents.records[3].code.size() == 32u << 20);
}

TEST_CASE("one call writes the record and the line in the map", "[writer][jitdump]") {
  const Scratch scratch;
  auto map = MapWriter::open(scratch / "x.map");
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer->load(function_of("both"), &*map));
  CHECK(read_file(scratch / "x.map") == "1000 30 both\n");
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"both"});
  REQUIRE(map->close());
  const auto half = writer->load(function_of("dump alone"), &*map);
  REQUIRE(!half);
  CHECK(half.error().message().find("x.map") != std::string::npos);
}

}  // namespace perfmap
