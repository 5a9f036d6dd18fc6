// SPDX-License-Identifier: MIT
#include "base/filler.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/map.hpp"
#include "support/catch.hpp"
#include "support/readers.hpp"
#include "support/scratch.hpp"

namespace perfmap::filler_test {
namespace {

const std::string kFiller = "0 0 " + std::string(200, '.') + "\n";

std::vector<Map> maps_of(Input input) {
  std::vector<Map> maps;
  maps.emplace_back(std::move(input), Map::Options{.growing = true});
  return maps;
}

}  // namespace

TEST_CASE("filler lines are distinguished from entries", "[filler]") {
  for (const std::string_view line :
       {"0 0 .", "0 0 ....", "0 0 .529fcf759 b name", "70 0 .", "7f0 0 .f", "7f35 0 .29 b x",
        "7f352 0 .9", "00 0 .", "0 0 0 .", "0 00 0 .", "0 0 0 0 ."}) {
    CAPTURE(line);
    CHECK(is_filler(line));
  }
  for (const std::string_view line :
       {"", "0", "0 0", "0 0 ", "0 0 x.", "0 0 foo", "1000 1 .x", "7f3529fcf759 0 .x", "0 0  .",
        "x 0 .", ". 0 .", "100000 0 ."}) {
    CAPTURE(line);
    CHECK(!is_filler(line));
  }
}

TEST_CASE("a map ends where its final filler begins", "[filler]") {
  CHECK(without_filler("", false).empty());
  CHECK(without_filler(kFiller + kFiller, false).empty());
  CHECK(without_filler("1000 10 foo\n" + kFiller + "0 0 .half..\n" + kFiller, false) ==
        "1000 10 foo\n");
  CHECK(without_filler("1000 10 foo\n" + kFiller + "0 0 ..", false) == "1000 10 foo\n");
  CHECK(without_filler("1000 10 foo\n\n", false) == "1000 10 foo\n\n");
  CHECK(without_filler(kFiller + "1000 10 foo", true) == kFiller);
  CHECK(without_filler("1000 10 foo\n2000", true) == "1000 10 foo\n");
  CHECK(without_filler(kFiller + "1000 10 foo", false) == kFiller + "1000 10 foo");
  const Map map(Input::from_text("1000 10 foo\n" + kFiller, "x"));
  CHECK(map.text() == "1000 10 foo\n");
  CHECK(!map.ends_in_part());
}

TEST_CASE("filler anywhere is neither an entry nor a problem", "[filler]") {
  const std::string text = "100000 10 foo\n" + kFiller + "7f352 0 .9fcf759 b half\n" + kFiller +
                           "200000 0 without size\n" + kFiller;
  Diagnostics problems(10);
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "x"));
  std::vector<std::string> names;
  maps[0].for_each(problems, [&](const Entry& entry) { names.emplace_back(entry.name); });
  CHECK(names == std::vector<std::string>{"foo", "without size"});
  lint(maps[0], problems);
  CHECK(problems.count_of(rule::kSizeZero) == 1);
  CHECK(problems.total() == 1);
  const Index index(std::move(maps), Overlap::last, problems);
  CHECK(index.entry_count() == 2);
  CHECK(!index.find(0));
  CHECK(index.find_entry(0x200000)->name == "without size");
  CHECK(index.line_number(index.find(0x200000)) == 5);
}

TEST_CASE("all other readers accept filler and find the same entries", "[filler]") {
  using test::OtherReader;
  const std::string entries = "7f3529fcf759 b py::foo\n7f3529fcf800 10 py::bar\n";
  for (const OtherReader reader : {OtherReader::bcc, OtherReader::blazesym, OtherReader::samply,
                                   OtherReader::parca, OtherReader::pyroscope}) {
    const auto with = test::read_as(reader, entries + "7f352 0 .9fcf7 b half\n" + kFiller);
    REQUIRE(with);
    CHECK(test::find_as(reader, *with, 0x7f3529fcf75a) == "py::foo");
    CHECK(test::find_as(reader, *with, 0x7f3529fcf80f) == "py::bar");
  }
}

TEST_CASE("entries that replace filler count as appended", "[filler][refresh]") {
  const test::Scratch scratch;
  const std::string one = "1000 10 one\n";
  const std::string two = "2000 10 two\n";
  const std::string path = scratch.write("m.map", one + kFiller);
  Diagnostics problems(10);
  Index index(maps_of(*Input::open(path)), Overlap::last, problems);
  CHECK(index.entry_count() == 1);
  CHECK(index.refresh(problems) == Growth::unchanged);
  // The same size, in place, as a write through a mapping.
  const std::string rest = "0 0 " + kFiller.substr(4 + two.size());
  { std::fstream(path, std::ios::in | std::ios::out) << one + two + rest; }
  CHECK(index.refresh(problems) == Growth::appended);
  CHECK(index.entry_count() == 2);
  CHECK(index.find_entry(0x2008)->name == "two");
  { std::fstream(path, std::ios::in | std::ios::out) << one + two + "3000 10 three\n"; }
  std::filesystem::resize_file(path, one.size() + two.size() + 14);
  CHECK(index.refresh(problems) == Growth::appended);
  CHECK(index.entry_count() == 3);
  scratch.write("m.map", "4000 10 other\n" + kFiller);
  CHECK(index.refresh(problems) == Growth::replaced);
  CHECK(index.entry_count() == 1);
  CHECK(problems.total() == 0);
}

TEST_CASE("an index that follows a map with filler equals one of the final map",
          "[filler][refresh][property]") {
  const test::Scratch scratch;
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    std::string entries;
    const std::string path = scratch.write("p.map", "");
    Diagnostics problems(10);
    Index index(maps_of(*Input::open(path)), Overlap::last, problems);
    for (int step = 0; step < 30; ++step) {
      for (std::uint64_t i = random() % 4; i != 0; --i) {
        entries += std::to_string(1000 + random() % 50) + " " + std::to_string(random() % 9) +
                   " name " + std::to_string(step) + std::string(random() % 90, 'n') + "\n";
      }
      std::string tail;
      for (std::uint64_t i = random() % 5; i != 0; --i) tail += kFiller;
      if (random() % 4 == 0) tail = "7f35 0 .29fcf b half\n" + tail;
      scratch.write("p.map", entries + tail);
      REQUIRE(index.refresh(problems));
      std::vector<Map> maps;
      maps.emplace_back(Input::from_text(entries, "whole"));
      const Index whole(std::move(maps), Overlap::last, problems);
      REQUIRE(index.entry_count() == whole.entry_count());
      for (Address address = 0xff0; address < 0x1070; ++address) {
        const auto a = index.find_entry(address);
        const auto b = whole.find_entry(address);
        REQUIRE(a == b);
      }
    }
    CHECK(problems.total() == 0);
  }
}

}  // namespace perfmap::filler_test
