// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "support/jitdump_reading.hpp"

namespace perfmap::jitdump_damage_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using test::read;
using test::Reading;
using namespace std::string_literals;
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a record below 16 bytes loses only the bytes before the next record", "[jitdump]") {
  const std::string text = DumpBytes()
                               .header()
                               .load(1, 0x1000, "first", "cc")
                               .prefix(0, 8, 2)
                               .raw("garbage")
                               .load(3, 0x2000, "second", "cc")
                               .text();
  const Reading reading = read(dump_of(text));
  CHECK(reading.names == Names{"first", "second"});
  CHECK(reading.lost == 23);
  REQUIRE(reading.messages.size() == 1);
  CHECK(reading.messages[0] == "104: 23 bytes are not a record: skipped");
}

TEST_CASE("a record truncated in the middle loses only itself", "[jitdump]") {
  const std::string torn = DumpBytes().load(2, 0x1800, "torn", std::string(400, 'c')).text();
  const std::string text = DumpBytes().header().load(1, 0x1000, "first", "cc").text() +
                           torn.substr(0, 100) + DumpBytes().load(3, 0x2000, "second", "cc").text();
  const Reading reading = read(dump_of(text));
  CHECK(reading.names == Names{"first", "second"});
  CHECK(reading.lost == 100);
}

TEST_CASE("a truncated last record is counted, but is pending while the dump grows", "[jitdump]") {
  const std::string whole = DumpBytes().header().load(1, 0x1000, "first", "cc").text();
  const std::string text = whole + DumpBytes().load(2, 0x2000, "second", "cc").text();
  const std::string cut = text.substr(0, text.size() - 1);
  const Reading finished = read(dump_of(cut));
  CHECK(finished.names == Names{"first"});
  REQUIRE(finished.messages.size() == 1);
  CHECK(finished.messages[0] == "104: 64 bytes at the end are not a complete record");
  const Reading growing = read(dump_of(cut, {.growing = true}));
  CHECK(growing.names == Names{"first"});
  CHECK(growing.messages.empty());
}

TEST_CASE("a buffer that parent and child both wrote is read once", "[jitdump]") {
  // CPython: the child flushes what the parent has buffered, and later the parent flushes it again.
  // The buffer begins in the middle of a record.
  const std::string before = DumpBytes().header().load(1, 0x1000, "first", "some code").text();
  const std::string buffered = DumpBytes().load(2, 0x2000, "second", "more code").text() +
                               DumpBytes().load(3, 0x3000, "third", "and more").text();
  const std::size_t flushed = before.size() - 6;
  const std::string all = before + buffered;
  const std::string text =
      all + all.substr(flushed) + DumpBytes().load(4, 0x4000, "fourth", "after the fork").text();
  const Reading reading = read(dump_of(text));
  CHECK(reading.names == Names{"first", "second", "third", "fourth"});
  CHECK(reading.lost == all.size() - flushed);
  REQUIRE(reading.messages.size() == 1);
  CHECK(reading.messages[0].ends_with(
      "bytes repeat the bytes before them: a forked child wrote the buffer of its parent"));
}

TEST_CASE("records after a CLOSE are read, except with stop_at_close", "[jitdump]") {
  const std::string text =
      DumpBytes().header().load(1, 0x1000, "f", "c").close(2).load(3, 0x2000, "g", "c").text();
  CHECK(read(dump_of(text)).names == Names{"f", "g"});
  CHECK(read(dump_of(text, {.stop_at_close = true})).names == Names{"f"});
}

TEST_CASE("damage throughout a large file costs linear time", "[jitdump][hostile]") {
  const auto& pattern = GENERATE(values<std::string>({
      "\0"s,                                                       // LOAD ids with size 0
      "\0\0\0\0\x40\0\0\0"s,                                       // LOAD ids with a valid size
      "\0\0\0\0\x10\x27\0\0"s,                                     // with a larger one
      DumpBytes().prefix(0, 0x10000000, 0).text(),                 // with one past the end
      DumpBytes().load(1, 0x1000, "f", "c").text().substr(0, 50),  // truncated records
      DumpBytes().load(1, 0x1000, "f", "c").text() + "garbage",
  }));
  std::string text = DumpBytes().header().text();
  while (text.size() < (std::size_t{8} << 20)) text += pattern;
  const Jitdump dump = dump_of(std::move(text));
  Diagnostics problems(1);
  std::uint64_t bytes = 0;
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(problems)) bytes += record->bytes.size();
  CHECK(bytes + reader.lost_bytes() + JitdumpHeader::kSize == dump.bytes().size());
}

}  // namespace perfmap::jitdump_damage_test
