#include "perfdata/time_order.hpp"

#include <algorithm>

namespace perfmap {
namespace {

constexpr auto kByTime = [](const RecordView& a, const RecordView& b) { return a.time < b.time; };

/// Where stretches begin, and the end of the last one.
std::vector<std::size_t> stretches(const std::vector<RecordView>& records) {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].time < records[i - 1].time) begins.push_back(i);
  }
  begins.push_back(records.size());
  return begins;
}

}  // namespace

void sort_by_time(std::vector<RecordView>& records, std::vector<RecordView>& scratch) {
  if (records.size() < 2) return;
  std::vector<std::size_t> begins = stretches(records);
  if (begins.size() > 2) scratch.resize(records.size());
  while (begins.size() > 2) {
    std::size_t kept = 0;
    const auto at = [](auto& all, std::size_t i) {
      return all.begin() + static_cast<std::ptrdiff_t>(i);
    };
    for (std::size_t i = 0; i + 1 < begins.size(); i += 2) {
      const std::size_t begin = begins[i];
      const std::size_t middle = begins[i + 1];
      const std::size_t end = i + 2 < begins.size() ? begins[i + 2] : middle;
      std::merge(at(records, begin), at(records, middle), at(records, middle), at(records, end),
                 at(scratch, begin), kByTime);
      // What came in rounds is in order again once each round is.
      if (begin == 0 || kByTime(scratch[begin], scratch[begin - 1])) begins[kept++] = begin;
    }
    begins[kept++] = records.size();
    begins.resize(kept);
    records.swap(scratch);
  }
}

}  // namespace perfmap
