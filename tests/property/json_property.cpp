// SPDX-License-Identifier: MIT
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/json.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

namespace perfmap::json_property {
namespace {

using Plain = std::pair<AddressRange, std::string>;

/// Lines of any bytes. Many are entries with names of any bytes: blanks, CR, NUL, partial
/// characters, quotes, text like a number or a separator.
std::string hostile_map(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const char* const pieces[] = {" ",    "\t",   "\r",   ",",        "\"",           "\\",  "\xff",
                                "\xc3", "\xa9", "é",    "\xe6\x97", "\xf0\x9f\x98", "日",  "\x7f",
                                "\x01", "\x1b", "0x10", "#",        "{\"start\":1", "name"};
  std::string text;
  for (std::uint64_t i = below(30); i > 0; --i) {
    const std::uint64_t start = below(4) == 0 ? random() : below(1000);
    const std::uint64_t sizes[] = {0, 1, below(100), random(), UINT64_MAX};
    char numbers[64];
    const char* const forms[] = {"%llx %llx ", "0x%llx 0x%llx ", " %llX\t%llX ", "%llx,%llx,"};
    std::snprintf(numbers, sizeof numbers, forms[below(4)], static_cast<unsigned long long>(start),
                  static_cast<unsigned long long>(sizes[below(5)]));
    if (below(8) != 0) text += numbers;
    for (std::uint64_t piece = below(6); piece > 0; --piece) {
      if (below(20) == 0) text += '\0';
      text += pieces[below(std::size(pieces))];
    }
    text += below(5) == 0 ? "\r\n" : "\n";
  }
  if (below(4) == 0 && !text.empty()) text.pop_back();
  return text;
}

std::vector<Plain> entries_of(const Map& map) {
  std::vector<Plain> entries;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    entries.emplace_back(entry.range, std::string(entry.name));
  });
  return entries;
}

std::string to_json(const Map& map, bool lines) {
  Diagnostics problems(0);
  return test::written([&](OutputFile& out) {
    lines ? write_map_jsonl(map, out, problems) : write_map_json(map, out, problems);
  });
}

}  // namespace

TEST_CASE("a map converted to JSON and back has the same entries, byte for byte",
          "[property][json]") {
  const auto seed = GENERATE(range(0u, 2000u));
  const bool lines = seed % 2 == 0;
  const std::string text = hostile_map(seed);
  CAPTURE(seed, text);
  const Map map(Input::from_text(text, "perf-1.map"));
  const std::string json = to_json(map, lines);
  const Result<MapText> back = map_text_from_json(json);
  REQUIRE(back);
  CHECK(back->changed.count == 0);
  const Map again(Input::from_text(back->text, "perf-1.map"));
  REQUIRE(entries_of(again) == entries_of(map));
}

TEST_CASE("damaged JSON is read, or refused with a location inside it", "[property][json]") {
  const auto seed = GENERATE(range(0u, 1000u));
  std::mt19937_64 random(seed);
  std::string json = to_json(Map(Input::from_text(hostile_map(seed), "x")), seed % 2 == 0);
  for (int i = 0; i < 3 && !json.empty(); ++i) {
    json[random() % json.size()] = "\"{}[],:\\0\n\xffx "[random() % 14];
  }
  CAPTURE(seed, json);
  const Result<MapText> map = map_text_from_json(json);
  if (map) {
    const Map read(Input::from_text(map->text, "x"));
    CHECK(entries_of(read).size() == map->entries);
  } else {
    CHECK(map.error().where.offset <= json.size());
    CHECK(map.error().where.line >= 1);
    CHECK(map.error().where.column >= 1);
    CHECK(map.error().message().find('\n') == std::string::npos);
  }
}

}  // namespace perfmap::json_property
