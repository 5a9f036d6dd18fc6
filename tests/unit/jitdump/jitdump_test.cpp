// SPDX-License-Identifier: MIT
#include "perfmap/jitdump.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/jitdump_reading.hpp"

namespace perfmap::jitdump_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using test::read;
using test::Reading;
using namespace std::string_literals;

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an empty dump has no records and no problems", "[jitdump]") {
  const Jitdump dump = dump_of("");
  CHECK_FALSE(dump.header());
  const Reading reading = read(dump);
  CHECK(reading.records.empty());
  CHECK(reading.messages.empty());
}

TEST_CASE("a dump that contains only a header has no records", "[jitdump]") {
  const Jitdump dump = dump_of(DumpBytes().header().text());
  REQUIRE(dump.header());
  CHECK(dump.header()->pid == 42);
  CHECK(read(dump).records.empty());
}

TEST_CASE("records begin after a header longer than 40 bytes", "[jitdump]") {
  const Jitdump dump = dump_of(
      DumpBytes().header({.total_size = 52}).raw("twelve bytes").load(5, 0x1000, "f", "cc").text());
  CHECK(dump.header_extra() == "twelve bytes");
  CHECK(read(dump).names == Names{"f"});
}

TEST_CASE("a header with an impossible size has 40 bytes", "[jitdump]") {
  const auto size = GENERATE(0u, 16u, 39u, 5000u, 0xffffffffu);
  const Jitdump dump =
      dump_of(DumpBytes().header({.total_size = size}).load(5, 0x1000, "f", "cc").text());
  CHECK(read(dump).names == Names{"f"});
}

TEST_CASE("unexpected versions, flags, machines and padding of the header are accepted",
          "[jitdump]") {
  const auto header = GENERATE(values<DumpBytes::Header>({
      {.version = 0},
      {.version = 2},
      {.elf_mach = 0},
      {.pad1 = 0xDEADBEEF},
      {.flags = 0xfffffffffffffff0},
  }));
  const Jitdump dump = dump_of(DumpBytes().header(header).load(5, 0x1000, "f", "cc").text());
  CHECK(read(dump).names == Names{"f"});
}

TEST_CASE("records need no alignment", "[jitdump]") {
  DumpBytes bytes;
  bytes.header();
  Names expected;
  for (std::size_t i = 1; i < 9; ++i) {
    expected.emplace_back(i, 'n');
    bytes.load(i, 0x1000 * i, expected.back(), "c");
  }
  CHECK(read(dump_of(bytes.text())).names == expected);
}

TEST_CASE("a record of an unknown kind is kept and skipped by its size", "[jitdump]") {
  const Jitdump dump =
      dump_of(DumpBytes().header().prefix(9, 24, 5).u64(1).load(6, 0x1000, "f", "cc").text());
  const Reading reading = read(dump);
  REQUIRE(reading.records.size() == 2);
  CHECK(reading.records[0].id == 9);
  CHECK(reading.names == Names{"f"});
  CHECK(reading.messages.empty());
}

TEST_CASE("code follows the name, and bytes after it are padding", "[jitdump]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .prefix(0, 56 + 2 + 4 + 3, 5)
                                   .u32(42)
                                   .u32(43)
                                   .u64(0x1000)
                                   .u64(0x1000)
                                   .u64(4)
                                   .u64(1)
                                   .raw("f\0code\0\0\0"s)
                                   .text());
  const auto load = decode_load(read(dump).records.at(0));
  REQUIRE(load);
  CHECK(load->code == "code");
  CHECK(load->padding == "\0\0\0"s);
}

TEST_CASE("a LOAD without code has a size and no bytes", "[jitdump]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .prefix(0, 56 + 2, 5)
                                   .u32(42)
                                   .u32(43)
                                   .u64(0x1000)
                                   .u64(0x1000)
                                   .u64(4096)
                                   .u64(1)
                                   .raw("f\0"s)
                                   .text());
  const auto load = decode_load(read(dump).records.at(0));
  REQUIRE(load);
  CHECK(load->range == AddressRange{0x1000, 4096});
  CHECK(load->code.empty());
}

TEST_CASE("a LOAD with an unterminated name is not decoded", "[jitdump]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .prefix(0, 60, 5)
                                   .u32(42)
                                   .u32(43)
                                   .u64(0x1000)
                                   .u64(0x1000)
                                   .u64(2)
                                   .u64(1)
                                   .raw("fcc!")
                                   .load(6, 0x2000, "g", "cc")
                                   .text());
  const Reading reading = read(dump);
  REQUIRE(reading.records.size() == 2);
  CHECK_FALSE(decode_load(reading.records[0]));
  CHECK(reading.names == Names{"g"});
}

TEST_CASE("a code size past the end of the address space is truncated there", "[jitdump]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .prefix(0, 58, 5)
                                   .u32(42)
                                   .u32(43)
                                   .u64(0)
                                   .u64(UINT64_MAX - 15)
                                   .u64(UINT64_MAX)
                                   .u64(1)
                                   .raw("f\0"s)
                                   .text());
  const auto load = decode_load(read(dump).records.at(0));
  REQUIRE(load);
  CHECK(load->range == AddressRange{UINT64_MAX - 15, 16});
  CHECK(load->code_size == UINT64_MAX);
}

TEST_CASE("file name FF 00 repeats that of the previous line", "[jitdump]") {
  const Jitdump dump = dump_of(
      DumpBytes().header().debug_info(1, 16, {{16, 1, 0, "a.c"}, {20, 2, 0, "\xff"}}).text());
  const auto lines = decode_lines(read(dump).records.at(0));
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK((*lines)[1].file == "a.c");
  CHECK((*lines)[1].file_repeats);
}

TEST_CASE("lines that exceed their record are not decoded", "[jitdump]") {
  const DumpBytes::Line line{16, 1, 0, "abcdefgh"};
  std::string text = DumpBytes().header().debug_info(1, 16, {line}).text();
  SECTION("an unterminated file name") { text.back() = 'x'; }
  SECTION("more lines than fit") { text[40 + 24] = 2; }
  SECTION("an absurd number of lines") { text[40 + 30] = '\x7f'; }
  const Jitdump dump = dump_of(text + DumpBytes().load(6, 0x1000, "f", "cc").text());
  const Reading reading = read(dump);
  REQUIRE(reading.records.size() == 2);
  CHECK_FALSE(decode_lines(reading.records[0]));
  CHECK(reading.odd_sizes.size() <= 1);
}

TEST_CASE("unwinding information is decoded in either order", "[jitdump]") {
  const std::string frame = "\x14\0\0\0\0\0\0\0some frame"s;
  const std::string header = "\x01\x1b\x03\x3btable..."s;
  const bool header_first = GENERATE(false, true);
  const std::string data = header_first ? header + frame : frame + header;
  const Jitdump dump =
      dump_of(DumpBytes().header().unwinding(1, data, header.size(), 32, 5).text());
  const auto info = decode_unwinding(read(dump).records.at(0));
  REQUIRE(info);
  CHECK(info->header_first == header_first);
  CHECK(info->eh_frame == frame);
  CHECK(info->eh_frame_hdr == header);
  CHECK(info->padding.size() == 5);
}

TEST_CASE("unwinding information with inconsistent sizes is not decoded", "[jitdump]") {
  std::string text = DumpBytes().header().unwinding(1, "frame...header..", 8, 0).text();
  SECTION("the header is larger than the data") { text[40 + 24] = 17; }
  SECTION("the data is larger than the record") { text[40 + 16] = 17; }
  const Jitdump dump = dump_of(text + DumpBytes().load(6, 0x1000, "f", "cc").text());
  const Reading reading = read(dump);
  REQUIRE(reading.records.size() == 2);
  CHECK_FALSE(decode_unwinding(reading.records[0]));
  CHECK(reading.odd_sizes == std::vector<std::string>{"JD212"});
}

}  // namespace perfmap::jitdump_test
