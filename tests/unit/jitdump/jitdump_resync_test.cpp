// SPDX-License-Identifier: MIT
// Which bytes after damage are accepted as a record.

#include <cstdint>
#include <string>
#include <vector>

#include "support/jitdump_reading.hpp"

namespace perfmap::jitdump_resync_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using test::read;
using test::Reading;
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an unknown record has at least 16 bytes", "[jitdump][damage]") {
  // With 15 bytes it would end where the LOAD begins, whose first byte is the last one of its time.
  const std::string prefix = DumpBytes(std::endian::little).prefix(9, 15, 5).text();
  const std::string load = DumpBytes(std::endian::little).load(6, 0x1000, "f", "code").text();
  const std::string header = DumpBytes(std::endian::little).header().text();
  const Reading reading = read(dump_of(header + prefix.substr(0, 15) + load));
  CHECK(reading.records.size() == 1);
  CHECK(reading.names == Names{"f"});
  CHECK(reading.lost == 15);

  const Reading whole =
      read(dump_of(header + DumpBytes(std::endian::little).prefix(9, 16, 5).text() + load));
  CHECK(whole.records.size() == 2);
  CHECK(whole.lost == 0);

  // An unknown record is rejected if a record of 15 bytes follows it.
  const std::string known = DumpBytes(std::endian::little).prefix(0, 15, 5).text().substr(0, 15);
  const std::string unknown = DumpBytes(std::endian::little).prefix(9, 16, 5).text();
  const Reading before = read(dump_of(header + unknown + known + load));
  CHECK(before.records.size() == 1);
  CHECK(before.lost == 31);
}

TEST_CASE("after damage only records within 52 days of the previous one are accepted",
          "[jitdump][damage]") {
  constexpr std::uint64_t kNow = std::uint64_t{1} << 60;
  constexpr std::uint64_t kWindow = std::uint64_t{1} << 52;
  const auto [time, counts] = GENERATE_COPY(table<std::uint64_t, bool>({
      {kNow + kWindow - 1, true},
      {kNow + kWindow, false},
      {kNow - kWindow + 1, true},
      {kNow - kWindow, false},
      {kNow, true},
  }));
  CAPTURE(time);
  const std::string garbage(20, '\xee');
  const std::string tail = DumpBytes().load(time, 0x2000, "second", "code").text();
  const Reading reading = read(dump_of(
      DumpBytes().header().load(kNow, 0x1000, "first", "code").raw(garbage).raw(tail).text()));
  CHECK(reading.names == (counts ? Names{"first", "second"} : Names{"first"}));
  CHECK(reading.lost == garbage.size() + (counts ? 0 : tail.size()));
}

TEST_CASE("FF 00 as the first file name of a record is a name", "[jitdump]") {
  const Jitdump dump = dump_of(
      DumpBytes().header().debug_info(1, 16, {{16, 1, 0, "\xff"}, {20, 2, 0, "\xff"}}).text());
  const Reading reading = read(dump);
  const auto lines = decode_lines(reading.records.at(0));
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK((*lines)[0].file == "\xff");
  CHECK_FALSE((*lines)[0].file_repeats);
  CHECK((*lines)[1].file == "\xff");
  CHECK((*lines)[1].file_repeats);
}

}  // namespace perfmap::jitdump_resync_test
