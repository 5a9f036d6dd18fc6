// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "map/segments.hpp"
#include "support/catch.hpp"

namespace perfmap::sort_property {
namespace {

using Row = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;

/// Shapes of addresses, sizes and lines; the sort takes a different path for each.
struct Shape {
  const char* what;
  std::uint64_t address_bits;
  unsigned zero_bits;
  std::uint32_t max_size;
  std::uint64_t line_step;
  std::uint64_t maps;
};

constexpr Shape kShapes[] = {
    {"code in one place", 24, 4, 0x800, 60, 1},
    {"code in several pieces of 4 GiB", 36, 4, 0x800, 60, 1},
    {"two maps", 34, 0, 0x800, 60, 2},
    {"more maps than fit beside a line", 34, 0, 0x800, std::uint64_t{1} << 34, 4000},
    {"sizes of all lengths", 34, 0, UINT32_MAX, 60, 1},
    {"sizes of all lengths in a long file", 34, 0, UINT32_MAX, std::uint64_t{1} << 36, 1},
    {"addresses all over the place", 64, 0, UINT32_MAX, 60, 1},
    {"the same address again and again", 3, 0, 0x800, 60, 1},
};

Columns columns_of(const std::vector<Row>& rows) {
  Columns columns;
  columns.make_room(rows.size());
  for (const auto& [begin, size, line] : rows) {
    columns.begin.append_unchecked(begin);
    columns.size.append_unchecked(size);
    columns.line.append_unchecked(line);
  }
  return columns;
}

std::vector<Row> rows_of(const Columns& columns) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < columns.count(); ++i) {
    rows.emplace_back(columns.begin[i], columns.size[i], columns.line[i]);
  }
  return rows;
}

std::vector<Row> random_rows(const Shape& shape, std::size_t count, std::mt19937_64& random) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t begin = random() >> (64 - shape.address_bits) >> shape.zero_bits
                                                                             << shape.zero_bits;
    const auto size = static_cast<std::uint32_t>(random() % shape.max_size + 1);
    const std::uint64_t map = i * shape.maps / count;
    rows.emplace_back(begin, size, map << kMapShift | i * shape.line_step % (1ull << kMapShift));
  }
  return rows;
}

void check_against_stable_sort(std::vector<Row> rows) {
  Columns columns = columns_of(rows);
  sort_columns(columns);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return std::get<0>(a) < std::get<0>(b); });
  CHECK((rows_of(columns) == rows));
}

}  // namespace

TEST_CASE("columns are sorted like rows in a stable sort by address", "[property]") {
  const std::size_t which = GENERATE(range(std::size_t{0}, std::size(kShapes)));
  const Shape& shape = kShapes[which];
  CAPTURE(shape.what);
  std::mt19937_64 random(which);
  for (const std::size_t count : {0, 1, 2, 3, 1000, 5000}) {
    check_against_stable_sort(random_rows(shape, count, random));
  }
}
TEST_CASE("more columns than fit the cache are sorted", "[property]") {
  std::mt19937_64 random(1);
  check_against_stable_sort(random_rows(kShapes[1], 700'000, random));
  check_against_stable_sort(random_rows(kShapes[7], 700'000, random));
}

}  // namespace perfmap::sort_property
