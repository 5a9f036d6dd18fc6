// SPDX-License-Identifier: MIT
#include "perfmap/resolver.hpp"
#include "support/catch.hpp"

namespace perfmap::doubt_test {

TEST_CASE("each kind of doubt has a unique name and an explanation") {
  std::string all;
  Doubts doubts;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    REQUIRE(!to_string(doubt_at(i)).empty());
    REQUIRE(explain(doubt_at(i)).size() > 20);
    REQUIRE(all.find(to_string(doubt_at(i))) == std::string::npos);
    if (i != 0) all += ',';
    all += to_string(doubt_at(i));
    doubts.add(doubt_at(i));
  }
  REQUIRE(to_string(doubts) == all);
}

TEST_CASE("doubts are listed in a fixed order") {
  Doubts doubts;
  REQUIRE(!doubts.any());
  REQUIRE(to_string(doubts).empty());
  doubts.add(Doubt::guessed_owner);
  doubts.add(Doubt::damaged_record);
  REQUIRE(to_string(doubts) == "damaged-record,guessed-owner");
  REQUIRE(doubts.has(Doubt::guessed_owner));
  REQUIRE(!doubts.has(Doubt::clamped_range));
}

}  // namespace perfmap::doubt_test
