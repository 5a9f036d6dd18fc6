// SPDX-License-Identifier: MIT
#include <elf.h>

#include "perfmap/profile/annotate.hpp"
#include "support/catch.hpp"

namespace perfmap::listing_test {
namespace {

/// push, mov (3 bytes), ret; lines 10 and 11 of a.c.
CodeVersion version() {
  CodeVersion made;
  made.range = {0x1000, 5};
  made.machine = {EM_X86_64, true, std::endian::little};
  made.code = {"\x55\x48\x89\xe5\xc3", 5};
  made.files = {"/a.c"};
  made.places = {{0, 0, 10}, {1, 0, 11}, {4, 0, 10}};
  made.samples = {{0, 1, 1}, {1, 2, 3}, {3, 4, 4}, {9, 5, 6}};
  return made;
}

struct Row {
  std::uint64_t offset, self, total;
  std::uint32_t line;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows(const CodeVersion& version, const Disassembler* disassembler) {
  std::vector<Row> found;
  list_code(version, disassembler, [&](const ListingRow& row) {
    found.push_back({row.offset, row.self, row.total, row.place == nullptr ? 0 : row.place->line});
  });
  return found;
}

}  // namespace

TEST_CASE("samples within an instruction are the instruction's", "[annotate]") {
  const CodeVersion code = version();
  const auto disassembler = Disassembler::open(code.machine);
  if (!disassembler) {
    WARN("skipped: " + disassembler.error().message());
    return;
  }
  // The last row is outside of the code's bytes.
  CHECK(rows(code, &*disassembler) ==
        std::vector<Row>{{0, 1, 1, 10}, {1, 6, 7, 11}, {4, 0, 0, 10}, {9, 5, 6, 10}});
}

TEST_CASE("without a disassembler the rows are the addresses with samples", "[annotate]") {
  CHECK(rows(version(), nullptr) ==
        std::vector<Row>{{0, 1, 1, 10}, {1, 2, 3, 11}, {3, 4, 4, 11}, {9, 5, 6, 10}});
}

TEST_CASE("the lines of code are listed with their samples", "[annotate]") {
  CodeVersion code = version();
  code.places.push_back({5, 0, 0});  // no line
  const std::vector<LineSamples> lines = list_lines(code);
  REQUIRE(lines.size() == 2);
  CHECK((lines[0].line == 10 && lines[0].self == 1 && lines[0].total == 1));
  CHECK((lines[1].line == 11 && lines[1].self == 6 && lines[1].total == 7));
}

TEST_CASE("lines without samples and text are not shown", "[annotate]") {
  CodeVersion code = version();
  code.places.insert(code.places.end(), {{5, 0, 99}, {6, 0, 10}});
  code.files = {"/no/such/file.c", "/no/such/other.c"};
  SourceText source;
  CHECK(list_lines(code).size() == 3);
  CHECK(list_lines(code, source).size() == 2);
}

TEST_CASE("a sample with several offsets in a row or line counts once in its total", "[annotate]") {
  CodeVersion code = version();
  code.samples = {{1, 2, 4}, {2, 0, 3}, {3, 0, 3}, {4, 0, 3}};
  code.shared = {{{1, 2, 3}, 2}, {{3, 4}, 1}};
  const std::vector<LineSamples> lines = list_lines(code);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].total == 3);
  CHECK(lines[1].total == 4 + 3 + 3 - 2 * 2);
  const auto disassembler = Disassembler::open(code.machine);
  if (!disassembler) return;
  CHECK(rows(code, &*disassembler) ==
        std::vector<Row>{{0, 0, 0, 10}, {1, 2, 6, 11}, {4, 0, 3, 10}});
}

TEST_CASE("an offset before the first place has no line", "[annotate]") {
  CodeVersion code = version();
  code.places = {{2, 0, 7}};
  CHECK(code.place_at(1) == nullptr);
  REQUIRE(code.place_at(2) != nullptr);
  CHECK(code.place_at(UINT64_MAX)->line == 7);
}

TEST_CASE("code is alive in its span, or always if that is unknown", "[annotate]") {
  CodeVersion code;
  CHECK(code.is_alive_at(0));
  code.since = 10;
  code.until = 20;
  CHECK_FALSE(code.is_alive_at(9));
  CHECK(code.is_alive_at(10));
  CHECK(code.is_alive_at(19));
  CHECK_FALSE(code.is_alive_at(20));
}

}  // namespace perfmap::listing_test
