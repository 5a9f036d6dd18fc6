// SPDX-License-Identifier: MIT
// Any bytes are a map: reading, look-ups and tidying agree with each other.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Map map(Input::from_text(text, "fuzz"));
  check(map, Overlap::last);
  check(map, Overlap::inner);
  index_of(map, Overlap::perf).find(0x1000);
  Diagnostics problems(20);
  lint(map, problems);
  return 0;
}
