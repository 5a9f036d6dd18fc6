// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/map.hpp"
#include "support/catch.hpp"

namespace perfmap::map_line_test {
namespace {

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "test.map")); }

std::vector<Entry> entries_of(const Map& map, Diagnostics& problems) {
  std::vector<Entry> entries;
  map.for_each(problems, [&](const Entry& entry) { entries.push_back(entry); });
  return entries;
}

/// The only entry of a line, as both the line parser and the index's fast path read it.
struct Read {
  AddressRange range;
  std::string name;  // an Entry's name would die with its map
};
Read only_entry(const std::string& text) {
  Diagnostics problems(0);
  const Map map =
      map_of(text + std::string(text.ends_with('\n') ? "" : "\n") + std::string(80, '#'));
  const std::vector<Entry> entries = entries_of(map, problems);
  REQUIRE(entries.size() == 1);
  std::vector<Map> maps = {map};
  const Index index(std::move(maps), Overlap::last, problems);
  const auto found = index.find_entry(entries[0].range.begin);
  REQUIRE(found);
  CHECK(found->name == entries[0].name);
  CHECK(found->range == entries[0].range);
  return {entries[0].range, std::string(entries[0].name)};
}

}  // namespace

TEST_CASE("a number is read only from its own characters", "[map]") {
  const std::string_view text = "0x12";
  CHECK(parse_hex(text) == 0x12);
  CHECK(parse_hex(text.substr(0, 3)) == 1);
  CHECK_FALSE(parse_hex(text.substr(0, 2)));
  CHECK(parse_hex(text.substr(0, 1)) == 0);
  CHECK_FALSE(parse_hex(text.substr(0, 0)));
}

TEST_CASE("a malformed line is reported at its first bad column", "[map]") {
  struct Case {
    std::string text;
    const Rule* rule;
    std::uint64_t column;
  };
  const auto c = GENERATE(values<Case>({
      {"xyz 10 foo", &rule::kBadAddress, 1},
      {"0x 10 foo", &rule::kBadAddress, 1},
      {"-10 10 foo", &rule::kSignedNumber, 1},
      {"+10 10 foo", &rule::kSignedNumber, 1},
      {"10 -10 foo", &rule::kSignedNumber, 4},
      {"10000000000000000 1 wide", &rule::kBadAddress, 1},
      {"10 10000000000000000 wide", &rule::kBadSize, 4},
      {"1000 zz alpha", &rule::kBadSize, 6},
      {"1000 face_book f", &rule::kBadSize, 6},  // starts like a number, but is not one
      {"1000", &rule::kTooFewFields, 5},
      {"1000 10", &rule::kTooFewFields, 8},
      {"1000 10 ", &rule::kTooFewFields, 9},
      {"1000 10 \r", &rule::kTooFewFields, 9},
  }));
  CAPTURE(c.text);
  Diagnostics found(0);
  const Map map = map_of("10 1 before\n" + c.text + "\n20 1 after\n");
  CHECK(entries_of(map, found).size() == 2);
  REQUIRE(found.items().size() == 1);
  CHECK(found.items()[0].rule->id == c.rule->id);
  CHECK(found.items()[0].where.line == 2);
  CHECK(found.items()[0].where.column == c.column);
  CHECK(found.items()[0].where.offset == 12 + c.column - 1);
}

TEST_CASE("all spellings that runtimes use are read", "[map]") {
  struct Case {
    std::string text;
    AddressRange range;
    std::string name;
  };
  const auto c = GENERATE(values<Case>({
      {"1000 10 foo", {0x1000, 0x10}, "foo"},
      {"1000 10 a", {0x1000, 0x10}, "a"},
      {"0x1000 0x10 alpha", {0x1000, 0x10}, "alpha"},
      {"0x7f977ac2c000 68 $module:fun/1", {0x7f977ac2c000, 0x68}, "$module:fun/1"},
      {"0x00007f6cc9200100 0x0000000000000368 void A.b(int, long)",
       {0x7f6cc9200100, 0x368},
       "void A.b(int, long)"},
      {"0000000000000000001000 10 padded", {0x1000, 0x10}, "padded"},
      {"00007F2B5B5C0F30 1F NET", {0x7f2b5b5c0f30, 0x1f}, "NET"},
      {"10AB 1F alpha", {0x10ab, 0x1f}, "alpha"},
      {"  1000 10 alpha", {0x1000, 0x10}, "alpha"},
      {"1000  10  alpha", {0x1000, 0x10}, "alpha"},
      {"1000\t10\talpha", {0x1000, 0x10}, "alpha"},
      {"1000,10,alpha", {0x1000, 0x10}, "alpha"},
      {"1000 10 alpha\r\n", {0x1000, 0x10}, "alpha"},
      {"\xef\xbb\xbf"
       "1000 10 alpha",
       {0x1000, 0x10},
       "alpha"},
      {"1000 10 two  words and trailing  ", {0x1000, 0x10}, "two  words and trailing  "},
      {"1000 10 _ZN3foo3barEv", {0x1000, 0x10}, "_ZN3foo3barEv"},
      {"1000 10 \xff\xfe not UTF-8", {0x1000, 0x10}, "\xff\xfe not UTF-8"},
      {"1000 0 nothing", {0x1000, 0}, "nothing"},
      {"ffffffffffffffff 0 top", {UINT64_MAX, 0}, "top"},
      {"fffffffffffffff0 8 near", {0xfffffffffffffff0, 8}, "near"},
  }));
  CAPTURE(c.text);
  const Read entry = only_entry(c.text);
  CHECK(entry.range == c.range);
  CHECK(entry.name == c.name);
}

TEST_CASE("a NUL stays in the name", "[map]") {
  using namespace std::string_literals;
  CHECK(only_entry("1000 10 a\0b"s).name == "a\0b"s);
}

TEST_CASE("a range past the end of the address space is truncated there", "[map]") {
  Diagnostics found(0);
  const Map map = map_of("ffffffffffffff00 ffffffffffffffff wraps\n");
  const std::vector<Entry> entries = entries_of(map, found);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].range == AddressRange{0xffffffffffffff00, 0x100});
  REQUIRE(found.items().size() == 1);
  CHECK(found.items()[0].rule->id == rule::kAddressWrap.id);
}

TEST_CASE("comments and blank lines are ignored and not reported", "[map]") {
  Diagnostics found(0);
  CHECK(entries_of(map_of("# comment here now\n\n   \n\r\n#\n"), found).empty());
  CHECK(found.total() == 0);
}

TEST_CASE("a last line without a newline counts, but not while the map grows", "[map]") {
  Diagnostics found(0);
  const std::string text = "1000 10 foo\n2000 10 omega";
  CHECK(entries_of(map_of(text), found).size() == 2);
  const Map growing(Input::from_text(text, "test.map"), {.growing = true});
  CHECK(entries_of(growing, found).size() == 1);
}

TEST_CASE("a line number is the count of newlines before, also far into a file", "[map]") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "1000 10 name " + std::to_string(i) + "\n";
  const Map map = map_of(text);
  Diagnostics found(0);
  std::uint64_t line = 0;
  for (const Entry& entry : entries_of(map, found)) CHECK(map.line_number(entry.offset) == ++line);
}

TEST_CASE("all problems are counted, but only a limited number per rule is kept", "[map]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "nonsense\n";
  Diagnostics found(20);
  CHECK(entries_of(map_of(text), found).empty());
  CHECK(found.items().size() == 20);
  CHECK(found.total() == 1000);
}

}  // namespace perfmap::map_line_test
