// SPDX-License-Identifier: MIT
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "perfmap/merge.hpp"
#include "support/catch.hpp"

namespace perfmap::diff_test {
namespace {

using Kind = NameChange::Kind;

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "test.map")); }

std::vector<std::string> changes_of(const std::string& before, const std::string& after) {
  std::vector<std::string> changes;
  const Map old_map = map_of(before);
  const Map new_map = map_of(after);
  const auto text = [](AddressRange range) {
    return std::to_string(range.begin) + "/" + std::to_string(range.size);
  };
  Diagnostics ignored(1);
  const std::uint64_t count = diff_maps(old_map, new_map, ignored, [&](const NameChange& change) {
    std::string line(change.name);
    if (change.kind != Kind::appeared) line += " -" + text(change.before);
    if (change.kind != Kind::vanished) line += " +" + text(change.after);
    changes.push_back(line);
  });
  CHECK(count == changes.size());
  return changes;
}

using Changes = std::vector<std::string>;

}  // namespace

TEST_CASE("order, repetition and bad lines do not count as differences", "[diff]") {
  CHECK(changes_of("1 1 a\n2 1 b\n", "2 1 b\nbad\n1 1 a\n1 1 a\n").empty());
}

TEST_CASE("a name's ranges of equal size are reported as moved", "[diff]") {
  CHECK(changes_of("1 4 f\n2 8 f\n", "3 8 f\n") == Changes{"f -1/4", "f -2/8 +3/8"});
  CHECK(changes_of("1 4 f\n", "3 8 f\n4 4 f\n") == Changes{"f -1/4 +4/4", "f +3/8"});
}

TEST_CASE("a name's ranges of different sizes are paired in address order", "[diff]") {
  CHECK(changes_of("1 4 f\n2 5 f\n", "3 8 f\n4 9 f\n5 7 f\n") ==
        Changes{"f -1/4 +3/8", "f -2/5 +4/9", "f +5/7"});
}

TEST_CASE("changes applied to the first map give the second", "[diff][property]") {
  std::mt19937 random(5);
  using Key = std::tuple<std::string, Address, std::uint64_t>;
  for (int round = 0; round < 500; ++round) {
    std::set<Key> sides[2];
    std::string texts[2];
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = random() % 20; i > 0; --i) {
        const Key key{std::string(3, static_cast<char>('a' + random() % 3)), random() % 8 + 1,
                      random() % 4 + 1};
        sides[side].insert(key);
        texts[side] += std::to_string(std::get<1>(key)) + " " + std::to_string(std::get<2>(key)) +
                       " " + std::get<0>(key) + "\n";
      }
    }
    const Map before = map_of(texts[0]);
    const Map after = map_of(texts[1]);
    std::set<Key> result = sides[0];
    Diagnostics ignored(1);
    diff_maps(before, after, ignored, [&](const NameChange& change) {
      const std::string name(change.name);
      if (change.kind != Kind::appeared) {
        CHECK(result.erase({name, change.before.begin, change.before.size}) == 1);
      }
      if (change.kind != Kind::vanished) {
        CHECK(result.emplace(name, change.after.begin, change.after.size).second);
      }
    });
    CHECK(result == sides[1]);
  }
}

TEST_CASE("a hundred thousand ranges of one name are compared in linear time", "[diff]") {
  // Quadratic time would be ten billion steps here.
  std::string before;
  std::string after;
  for (int i = 1; i <= 100'000; ++i) {
    before += std::to_string(i) + "0 1 f\n";
    after += std::to_string(i) + "1 1 f\n";
  }
  Diagnostics ignored(1);
  CHECK(diff_maps(map_of(before), map_of(after), ignored, [](const NameChange&) {}) == 100'000);
}

}  // namespace perfmap::diff_test
