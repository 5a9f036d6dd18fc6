// SPDX-License-Identifier: MIT
// Maps whose bytes another process changes while they are read: answers may be odd, but nothing is
// read or written outside of the file's bytes, and every loop ends.

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/info.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/report.hpp"
#include "perfmap/text.hpp"
#include "support/catch.hpp"
#include "support/changing_bytes.hpp"

namespace perfmap::changing_map_test {
namespace {

using test::ChangingFile;
using test::try_often;

Map map_of(const std::string& path) {
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  return Map(*std::move(input));
}

/// Lines of equal lengths; `name` is the name of the i-th.
template <class Name>
std::string lines(std::size_t count, const std::string& between, Name name) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += to_hex(0x100000 + i * 16) + " 10" + between + name(i) + "\n";
  }
  return text;
}

std::string numbered(std::size_t i) {
  const std::string digits = std::to_string(i * 7919 % 100000);
  return std::string(24, 'n') + std::string(5 - digits.size(), '0') + digits;
}

std::string one_name(std::size_t) { return std::string(29, 'm'); }

/// Checks the lines, and all that prints them again.
void read_in_all_ways(const std::string& path) {
  const Map map = map_of(path);
  Diagnostics problems(100);
  lint(map, problems);
  to_sarif({{path, map.text(), &problems}}, "1", "file:///docs");
  std::vector<Map> maps;
  maps.push_back(map);
  Index index(std::move(maps), Overlap::last, problems);
  index.compact();
  map_info(index, problems);
  unified_diff(map.text(), portable_text(index), path);
}

}  // namespace

TEST_CASE("a map whose names change while it is compared", "[hostile][changing]") {
  const std::string one = lines(20000, " ", numbered);
  const ChangingFile file("x.map", one, lines(20000, " ", one_name));
  const Map constant(Input::from_text(one, "y.map"));
  try_often([&] {
    Diagnostics problems(1);
    std::string last;
    diff_maps(constant, map_of(file.path()), problems, [&](const NameChange& change) {
      CHECK(last <= change.name);
      last = change.name;
    });
  });
}

TEST_CASE("names of a comparison are those that it sorted", "[hostile][changing]") {
  test::Scratch scratch;
  const std::string path = scratch.write("x.map", "1 1 bbb\n2 1 aaa\n3 1 ccc\n");
  const Map map = map_of(path);
  Diagnostics problems(1);
  std::vector<std::string> names;
  diff_maps(Map(Input::from_text("", "")), map, problems, [&](const NameChange& change) {
    if (names.empty()) std::fstream(path, std::ios::in | std::ios::out) << "1 1 zzz\n2 1 zzz\n";
    names.emplace_back(change.name);
  });
  CHECK(names == std::vector<std::string>{"aaa", "bbb", "ccc"});
}

TEST_CASE("a map whose lines vanish while they are counted by name", "[hostile][changing]") {
  const std::string one = lines(5000, " ", numbered);
  std::string other = one;
  std::replace(other.begin(), other.end(), ' ', '\n');
  const ChangingFile file("x.map", one, other);
  try_often([&] {
    Diagnostics problems(1);
    std::set<std::string> keys;
    for (const InfoGroup& group : group_entries(map_of(file.path()), GroupBy::name, problems)) {
      CHECK(group.key.size() == 29);
      CHECK(group.entries == 1);
      CHECK(keys.insert(group.key).second);
    }
  });
}

TEST_CASE("a map whose lines end elsewhere while they are checked", "[hostile][changing]") {
  // What looks like the end of a line when lines are searched is a blank when they are parsed.
  const ChangingFile file("x.map", lines(20000, " ", one_name), lines(20000, "\n", one_name));
  try_often([&] { read_in_all_ways(file.path()); });
}

TEST_CASE("a map whose bytes change everywhere while it is checked", "[hostile][changing]") {
  std::string one = lines(5000, " ", numbered);
  std::string other = one;
  // Blanks, newlines, carriage returns, tabs, prefixes, NULs and bytes of UTF-8 come and go.
  constexpr std::string_view kBytes("\n\r\t ,0xA\0\xc3\xa9\x1b#;", 14);
  for (std::size_t i = 0; i < other.size(); i += 1 + i % 7) other[i] = kBytes[i % kBytes.size()];
  const ChangingFile file("x.map", one, other);
  try_often([&] { read_in_all_ways(file.path()); });
}

TEST_CASE("the escapes of a name that changes have room", "[hostile][changing]") {
  const std::string one = '\x01' + std::string(2999, 'a');
  const ChangingFile file("name", one, std::string(3000, '\x01'));
  Result<Input> input = Input::open(file.path());
  REQUIRE(input);
  const std::string_view name = input->text();
  const auto is_escaped = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char byte) {
      return byte == 'a' || byte == 'x' || byte == '0' || byte == '1' || byte == '\\' ||
             static_cast<unsigned char>(byte) >= 0x80;  // of the ellipsis
    });
  };
  bool all = true;
  try_often([&] {
    std::string portable;
    append_portable_map_name(portable, name);
    std::string escaped;
    append_escaped_map_name(escaped, name);
    std::string visible;
    append_visible(visible, name);
    all = all && is_escaped(portable) && is_escaped(escaped) && is_escaped(visible);
  });
  CHECK(all);
}

}  // namespace perfmap::changing_map_test
