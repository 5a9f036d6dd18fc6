// SPDX-License-Identifier: MIT
#include <random>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/json.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/text.hpp"
#include "support/catch.hpp"
#include "support/readers.hpp"

namespace perfmap::portable_property {
namespace {

/// Lines of bad writers: crowded ranges, odd names and spellings, malformed lines.
std::string hostile_map(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const std::string names[] = {"a",
                               "",
                               "two words",
                               " blanks ",
                               "bad\xff utf8",
                               "tab\tin it",
                               "semi;colon",
                               "größe",
                               std::string(5000, 'l'),
                               "nul\0in"};
  std::string text;
  for (unsigned i = below(20); i > 0; --i) {
    char numbers[64];
    const char* const forms[] = {"%x %x ", "0x%x 0x%x ", "  %X\t%X  ", "%016x %08x "};
    std::snprintf(numbers, sizeof numbers, forms[below(4)], 0x7000 + below(60), below(20));
    text += below(12) == 0 ? "nonsense " : numbers;
    text += names[below(10)] + std::to_string(below(3) == 0 ? below(100) : 7);
    text += below(5) == 0 ? "\r\n" : "\n";
  }
  return text;
}

Index index_of(const std::string& text, Overlap overlap) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "test.map"));
  Diagnostics ignored(1);
  return {std::move(maps), overlap, ignored};
}

std::string name_at(const Index& index, Address address) {
  const auto entry = index.find_entry(address);
  return entry ? std::string(entry->name) : "";
}

}  // namespace

TEST_CASE("all readers give the same names for a portable map as perfmap for the original",
          "[property][merge]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  const std::string text = hostile_map(seed);
  const Overlap overlap = std::vector{Overlap::last, Overlap::first, Overlap::inner}[seed % 3];
  Index index = index_of(text, overlap);
  const std::string portable = portable_text(index.compact());
  const Index perf = index_of(portable, Overlap::perf);
  using test::OtherReader;
  for (Address address = 0x6fff; address < 0x7060; ++address) {
    std::string expected;
    if (const auto entry = index.find_entry(address))
      append_portable_map_name(expected, entry->name);
    REQUIRE(name_at(perf, address) == expected);
    for (const OtherReader reader : {OtherReader::bcc, OtherReader::blazesym, OtherReader::samply,
                                     OtherReader::parca, OtherReader::pyroscope}) {
      const auto entries = test::read_as(reader, portable);
      CAPTURE(static_cast<int>(reader), address, portable);
      REQUIRE(entries);
      REQUIRE(test::find_as(reader, *entries, address) == expected);
    }
  }
}

TEST_CASE("making a map portable twice equals doing it once", "[property][merge]") {
  const auto seed = GENERATE(range(0u, 100u));
  Index index = index_of(hostile_map(seed), Overlap::last);
  const std::string once = portable_text(index.compact());
  Index again = index_of(once, Overlap::last);
  CHECK(portable_text(again.compact()) == once);
}

TEST_CASE("names are escaped so that all readers accept them", "[names]") {
  struct Case {
    std::string name;
    std::string written;
  };
  const auto c = GENERATE(values<Case>({
      {"py::bar:/run/t.py", "py::bar:/run/t.py"},
      {"a", "[a]"},
      {"ab", "[ab]"},
      {"abc", "abc"},
      {"", "[?]"},
      {"   ", "[?]"},
      {"  a name ", "a name"},
      {"two\nlines", "two\\x0alines"},
      {"tab\t", "tab\\x09"},
      {"\x7f", "\\x7f"},
      {"bad\xff", "bad\\xff"},
      {"\xc0\x80", "\\xc0\\x80"},
      {"\xed\xa0\x80!", "\\xed\\xa0\\x80!"},
      {"größe", "größe"},
      {"\xc3\xa9", "[\xc3\xa9]"},
  }));
  CAPTURE(c.name);
  CHECK(escape_map_name(c.name) == c.written);
  CHECK(is_plain_map_name(c.name) == (c.name == c.written));
  CHECK(is_plain_map_name(c.written));
}

TEST_CASE("a long name is truncated between two characters", "[names]") {
  std::string out;
  append_portable_map_name(out, std::string(3999, 'x') + "é and more");
  CHECK(out == std::string(3999, 'x') + "…");
}

}  // namespace perfmap::portable_property
