// SPDX-License-Identifier: MIT
#include "perfmap/timeline.hpp"

#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::timeline_test {
namespace {

using test::dump_of;
using test::DumpBytes;

Timeline timeline_of(const DumpBytes& bytes,
                     const std::optional<TimeConversion>& conversion = std::nullopt) {
  Diagnostics problems(1);
  return {dump_of(bytes.text()), problems, conversion};
}

/// The name of the code there, "" if there is none.
std::string name_at(const Timeline& timeline, Address address,
                    std::uint64_t time = Timeline::kEnd) {
  const auto code = timeline.find(address, time);
  const auto record = code ? timeline.dump().record_at(code->load) : std::nullopt;
  const auto load = record ? decode_load(*record) : std::nullopt;
  return load ? std::string(load->name) : "";
}

}  // namespace

TEST_CASE("the timeline of an empty dump is empty", "[timeline]") {
  for (const DumpBytes& bytes : {DumpBytes(), DumpBytes().header()}) {
    const Timeline timeline = timeline_of(bytes);
    CHECK_FALSE(timeline.find(0));
    CHECK_FALSE(timeline.find(UINT64_MAX, 0));
    CHECK(timeline.load_count() == 0);
    timeline.for_each_at(Timeline::kEnd, [](const PlacedCode&) { FAIL("something"); });
  }
}

TEST_CASE("code exists from its load until the load that replaces it", "[timeline]") {
  const Timeline timeline = timeline_of(
      DumpBytes().header().load(10, 0x1000, "old", "cccc").load(20, 0x1000, "new", "cccc"));
  CHECK(name_at(timeline, 0x1000, 9).empty());
  CHECK(name_at(timeline, 0x1000, 10) == "old");
  CHECK(name_at(timeline, 0x1003, 19) == "old");
  CHECK(name_at(timeline, 0x1000, 20) == "new");
  CHECK(name_at(timeline, 0x1003) == "new");
  CHECK(name_at(timeline, 0x1004).empty());
  CHECK(timeline.find(0x1000, 15)->until == 20);
  CHECK(timeline.find(0x1000, 25)->until == Timeline::kEnd);
}

TEST_CASE("find_all() equals find() for each query, up to the last time", "[timeline]") {
  const Timeline timeline = timeline_of(DumpBytes()
                                            .header()
                                            .load(10, 0x1000, "old", "cccc")
                                            .load(Timeline::kEnd - 1, 0x1000, "last", "cccc"));
  std::vector<AddressAtTime> asked;
  for (std::size_t i = 0; i < 67; ++i) {
    asked.push_back({0x1000 + i % 5, i % 2 == 0 ? Timeline::kEnd : Timeline::kEnd - 2});
  }
  std::vector<std::optional<CodeAt>> answers(asked.size());
  timeline.find_all(asked, answers);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto alone = timeline.find(asked[i].address, asked[i].time);
    REQUIRE(answers[i].has_value() == alone.has_value());
    if (alone) CHECK(answers[i]->load == alone->load);
  }
  CHECK(name_at(timeline, 0x1000) == "last");
  CHECK(name_at(timeline, 0x1000, Timeline::kEnd - 2) == "old");
}

TEST_CASE("trap: a MOVE ends the old range and starts the new one", "[timeline][traps]") {
  const Timeline timeline =
      timeline_of(DumpBytes().header().load(10, 0x1000, "f", "cccc").move(20, 0x1000, 0x2000, 4));
  CHECK(name_at(timeline, 0x1000, 19) == "f");
  CHECK(name_at(timeline, 0x2000, 19).empty());
  CHECK(name_at(timeline, 0x1000, 20).empty());
  CHECK(name_at(timeline, 0x2003, 20) == "f");
  CHECK(timeline.find(0x2003)->range == AddressRange{0x2000, 4});
  CHECK(timeline.move_count() == 1);
}

TEST_CASE("a MOVE of unknown code moves nothing", "[timeline]") {
  const Timeline timeline = timeline_of(
      DumpBytes().header().load(10, 0x1000, "f", "cccc").move(20, 0x5000, 0x2000, 4, 77));
  CHECK(name_at(timeline, 0x1000) == "f");
  CHECK(name_at(timeline, 0x2000).empty());
  CHECK(timeline.move_count() == 0);
}

TEST_CASE("trap: code_index is not a key: each LOAD is separate code", "[timeline][traps]") {
  const Timeline timeline = timeline_of(
      DumpBytes().header().load(10, 0x1000, "a", "cccc", 7).load(20, 0x2000, "b", "cccc", 7));
  CHECK(name_at(timeline, 0x1000) == "a");
  CHECK(name_at(timeline, 0x2000) == "b");
}

TEST_CASE("trap: records are ordered by time, not by offset", "[timeline][traps]") {
  const Timeline timeline = timeline_of(
      DumpBytes().header().load(20, 0x1000, "late", "cccc").load(10, 0x1000, "early", "cccc"));
  CHECK(name_at(timeline, 0x1000, 15) == "early");
  CHECK(name_at(timeline, 0x1000, 20) == "late");
}

TEST_CASE("trap: a LOAD over part of older code trims it from that time on", "[timeline][traps]") {
  const Timeline timeline = timeline_of(
      DumpBytes().header().load(10, 0x1000, "old", "cccccccccc").load(20, 0x1004, "new", "cc"));
  CHECK(name_at(timeline, 0x1004, 19) == "old");
  CHECK(name_at(timeline, 0x1003, 20) == "old");
  CHECK(name_at(timeline, 0x1004, 20) == "new");
  CHECK(name_at(timeline, 0x1006, 20) == "old");
  CHECK(timeline.find(0x1006)->range == AddressRange{0x1000, 10});
}

TEST_CASE("code of size 0 covers its first byte", "[timeline]") {
  const Timeline timeline = timeline_of(DumpBytes().header().load(10, 0x1000, "stub", ""));
  CHECK(name_at(timeline, 0x1000) == "stub");
  CHECK(name_at(timeline, 0x1001).empty());
  CHECK(timeline.find(0x1000)->range == AddressRange{0x1000, 0});
}

TEST_CASE("sizes that wrap end at the end of the address space", "[timeline]") {
  const Timeline timeline = timeline_of(DumpBytes()
                                            .header()
                                            .load_of_size(10, 0x1000, UINT64_MAX, "all")
                                            .load_of_size(20, UINT64_MAX - 9, 100, "end")
                                            .load_of_size(30, UINT64_MAX, 1, "last"));
  CHECK(name_at(timeline, 0x1000) == "all");
  CHECK(name_at(timeline, UINT64_MAX - 10) == "all");
  CHECK(name_at(timeline, UINT64_MAX - 1, 15) == "all");
  CHECK(name_at(timeline, UINT64_MAX - 1) == "end");
  CHECK(name_at(timeline, UINT64_MAX, 15) == "all");
  CHECK(name_at(timeline, UINT64_MAX, 25) == "end");
  CHECK(name_at(timeline, UINT64_MAX) == "last");
}

TEST_CASE("ticks are converted to nanoseconds if the conversion is known", "[timeline]") {
  const TimeConversion conversion{.shift = 1, .mult = 3, .zero = 100};
  const Timeline timeline =
      timeline_of(DumpBytes().header({.flags = 1}).load(10, 0x1000, "f", "cccc"), conversion);
  CHECK(timeline.dump().has_tsc_times());
  CHECK(name_at(timeline, 0x1000, 114).empty());
  CHECK(name_at(timeline, 0x1000, 115) == "f");
}

TEST_CASE("a timeline follows a growing dump", "[timeline]") {
  test::Scratch scratch;
  DumpBytes bytes;
  bytes.header().load(10, 0x1000, "old", "cccc");
  const std::string path = scratch.write("jit-42.dump", bytes.text());
  Diagnostics problems(1);
  Timeline timeline(Jitdump(*Input::open(path), {.growing = true}), problems);
  CHECK(name_at(timeline, 0x1000) == "old");
  const std::size_t before = bytes.size();
  std::ofstream(path, std::ios::binary | std::ios::app)
      << bytes.load(20, 0x1000, "new", "cccc").text().substr(before);
  CHECK(timeline.refresh(problems).value() == Growth::appended);
  CHECK(name_at(timeline, 0x1000) == "new");
  CHECK(name_at(timeline, 0x1000, 19) == "old");
}

TEST_CASE("a dump that was truncated after opening has no code", "[timeline][hostile]") {
  test::Scratch scratch;
  DumpBytes bytes;
  bytes.header().load(10, 0x1000, "f", std::string(3 << 12, 'c'));
  const std::string path = scratch.write("jit-42.dump", bytes.text());
  Diagnostics problems(1);
  const Timeline timeline(Jitdump(*Input::open(path)), problems);
  REQUIRE(timeline.find(0x1000));
  const TruncationGuard guard;
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  const volatile char last = timeline.dump().bytes().back();
  CHECK(last == '\0');
  CHECK(timeline.dump().input().was_truncated());
  CHECK_FALSE(timeline.find(0x1000));
}

TEST_CASE("a million loads over one page keep look-ups correct and fast", "[timeline][hostile]") {
  constexpr std::uint64_t kMany = 1'000'000;
  std::mt19937_64 random(3);
  DumpBytes bytes;
  bytes.header();
  std::vector<AddressRange> ranges;
  for (std::uint64_t time = 0; time < kMany; ++time) {
    const std::uint64_t begin = random() % 4000;
    ranges.push_back({begin, 1 + random() % (4096 - begin)});
    bytes.load_of_size(time, begin, ranges.back().size, "f");
  }
  const Timeline timeline = timeline_of(bytes);
  for (int i = 0; i < 2000; ++i) {
    const Address address = random() % 4096;
    const std::uint64_t time = random() % kMany;
    std::uint64_t last = time;
    while (last != UINT64_MAX && !ranges[last].contains(address)) --last;
    const auto code = timeline.find(address, time);
    REQUIRE(code.has_value() == (last != UINT64_MAX));
    if (code) REQUIRE(code->range == ranges[last]);
  }
}

TEST_CASE("chosen code indices cannot make MOVEs slow", "[timeline][hostile]") {
  // Multiples of a hash table's bucket counts, which would all share one bucket.
  constexpr std::uint64_t kBuckets[] = {126'271, 256'279, 520'241, 1'056'323};
  DumpBytes bytes;
  bytes.header();
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    bytes.load_of_size(i, 0x1000 + 16 * i, 16, "f", i * kBuckets[i % 4]);
  }
  bytes.move(200'000, 0x1000, 0x10, 16, 0);
  CHECK(name_at(timeline_of(bytes), 0x10) == "f");
}

}  // namespace perfmap::timeline_test
