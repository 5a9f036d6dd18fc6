// SPDX-License-Identifier: MIT
// Any bytes are a map: reading, look-ups and tidying agree with each other, and a scan in parts by
// several threads with one by one thread.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "map/map_scan.hpp"
#include "perfmap/index.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/merge.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

Index index_of(const Map& map, Overlap overlap) {
  Diagnostics ignored(1);
  return {{map}, overlap, ignored};
}

/// The start of every entry has a result, a scan gives the same one, and tidying is idempotent.
void check(const Map& map, Overlap overlap) {
  Index index = index_of(map, overlap);
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    const EntryRef hit = index.find(entry.range.begin);
    require(static_cast<bool>(hit));
    EntryRef scanned;
    find_by_scan({&map, 1}, overlap, {&entry.range.begin, 1}, {&scanned, 1}, {}, ignored);
    require(scanned == hit);
  });
  const std::string tidy = portable_text(index.compact());
  Index again = index_of(Map(Input::from_text(tidy, "tidy")), overlap);
  require(portable_text(again.compact()) == tidy);
}

/// What a scan found; the problems of all rules.
struct Scan {
  static constexpr std::size_t kMax = 16;
  std::array<EntryRef, kMax> hits;
  std::array<bool, kMax> reused{};
  Diagnostics problems{2};

  Scan(const Map& map, Overlap overlap, std::span<const Address> addresses, unsigned threads) {
    constexpr std::uint64_t kPartBytes = 40;
    find_by_scan_of_parts({&map, 1}, overlap, addresses, {hits.data(), addresses.size()},
                          {reused.data(), addresses.size()}, problems, threads, kPartBytes);
    problems.sort();
  }
};

void check_threads(const Map& map, Overlap overlap) {
  std::vector<Address> addresses;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    if (addresses.size() < Scan::kMax) addresses.push_back(entry.range.begin);
  });
  const Scan one(map, overlap, addresses, 1);
  const Scan several(map, overlap, addresses, 3);
  require(one.hits == several.hits && one.reused == several.reused);
  require(one.problems.total() == several.problems.total());
  const auto is_same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.rule == b.rule && a.where.line == b.where.line && a.where.offset == b.where.offset &&
           a.where.column == b.where.column && a.message == b.message;
  };
  require(std::ranges::equal(one.problems.items(), several.problems.items(), is_same));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Map map(Input::from_text(text, "fuzz"));
  check(map, Overlap::last);
  check(map, Overlap::inner);
  constexpr std::array kPolicies = {Overlap::last, Overlap::first, Overlap::inner};
  check_threads(map, kPolicies[size % kPolicies.size()]);  // one: starting threads takes long
  index_of(map, Overlap::perf).find(0x1000);
  Diagnostics problems(20);
  lint(map, problems);
  return 0;
}
