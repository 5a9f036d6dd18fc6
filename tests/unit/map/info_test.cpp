// SPDX-License-Identifier: MIT
#include "perfmap/info.hpp"

#include <string>

#include "support/catch.hpp"

namespace perfmap::info_test {
namespace {

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "test.map")); }

MapInfo info_of(std::string text) {
  std::vector<Map> maps;
  maps.push_back(map_of(std::move(text)));
  Diagnostics problems(1);
  Index index(std::move(maps), Overlap::last, problems);
  index.compact();
  return map_info(index, problems);
}

std::vector<std::string> keys_of(const std::string& text, GroupBy by) {
  std::vector<std::string> keys;
  Diagnostics ignored(1);
  for (const InfoGroup& group : group_entries(map_of(text), by, ignored)) {
    keys.push_back(group.key + " " + std::to_string(group.entries) + " " +
                   std::to_string(group.bytes));
  }
  return keys;
}

}  // namespace

TEST_CASE("with reuse more bytes are claimed than covered, and size 0 counts as 1", "[info]") {
  const MapInfo info = info_of("1000 10 old\n1000 10 new\n1008 0 stub\n");
  CHECK(info.entries == 3);
  CHECK(info.claimed == 33);
  CHECK(info.covered == 16);
  CHECK(info.first == 0x1000);
  CHECK(info.last == 0x100f);
}

TEST_CASE("sums of hostile sizes saturate", "[info]") {
  const std::string text = "1 fffffffffffffff0 a\n1 fffffffffffffff0 a\n1 fffffffffffffff0 a\n";
  CHECK(info_of(text).claimed == UINT64_MAX);
  Diagnostics ignored(1);
  CHECK(group_entries(map_of(text), GroupBy::name, ignored).at(0).bytes == UINT64_MAX);
}

TEST_CASE("the runtime is the one with the most names", "[info]") {
  CHECK(info_of("1 1 native\n2 1 main\n3 1 guest-0x400123\n").runtime == Runtime::qemu);
  CHECK(info_of("1 1 native\n2 1 main\n").runtime == Runtime::unknown);
}

TEST_CASE("groups are sorted by bytes, then entries, then key", "[info]") {
  using Keys = std::vector<std::string>;
  const std::string text =
      "1000 10 JS:*b /a.js:1:1\n2000 10 JS:~b /a.js:1:1\n"
      "3000 20 JS:~a /a.js:2:1\n4000 20 int T.f(int)\n5000 0 native\n";
  CHECK(keys_of(text, GroupBy::name) ==
        Keys{"b /a.js:1:1 2 32", "a /a.js:2:1 1 32", "int T.f(int) 1 32", "native 1 1"});
  CHECK(keys_of(text, GroupBy::prefix) == Keys{"JS 3 64", "hotspot 1 32", " 1 1"});
  CHECK(keys_of(text, GroupBy::tier) == Keys{"interpreted 2 48", " 2 33", "turbofan 1 16"});
}

}  // namespace perfmap::info_test
