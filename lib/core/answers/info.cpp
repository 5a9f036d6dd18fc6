#include "perfmap/info.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_set>

namespace perfmap {
namespace {

/// Sizes come from the file: a few hostile ones would wrap a plain sum.
void add_size(std::uint64_t& sum, const Entry& entry) {
  const std::uint64_t size = std::max<std::uint64_t>(entry.range.size, 1);
  sum += std::min(size, std::numeric_limits<std::uint64_t>::max() - sum);
}

std::string key_of(const Entry& entry, GroupBy by) {
  if (by == GroupBy::name) return without_tier(entry.name);
  const DecodedName decoded = decode_name(entry.name);
  if (by == GroupBy::tier) return std::string(decoded.tier);
  const std::size_t colon = entry.name.find(':');
  const bool marked = decoded.runtime != Runtime::hotspot && colon != std::string_view::npos &&
                      colon != 0 &&
                      entry.name.substr(0, colon).find_first_of(" /(") == std::string_view::npos;
  return std::string(marked ? entry.name.substr(0, colon) : to_string(decoded.runtime));
}

}  // namespace

MapInfo map_info(const Index& index, const Diagnostics& problems) {
  const Map& map = index.maps().front();
  MapInfo info;
  info.bytes = map.text().size();
  info.lost_lines = problems.total();
  std::unordered_set<std::string_view> names;
  std::array<std::uint64_t, 32> runtimes{};
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    ++info.entries;
    add_size(info.claimed, entry);
    names.insert(entry.name);
    ++runtimes[static_cast<std::size_t>(decode_name(entry.name).runtime)];
  });
  info.names = names.size();
  info.runtime = static_cast<Runtime>(std::max_element(runtimes.begin() + 1, runtimes.end()) -
                                      runtimes.begin());
  if (runtimes[static_cast<std::size_t>(info.runtime)] == 0) info.runtime = Runtime::unknown;
  const std::size_t count = index.segment_count();
  for (std::size_t i = 0; i < count; ++i) info.covered += index.segment(i).range.size;
  if (count != 0) {
    info.first = index.segment(0).range.begin;
    const AddressRange last = index.segment(count - 1).range;
    info.last = last.begin + (last.size - 1);
  }
  return info;
}

std::vector<InfoGroup> group_entries(const Map& map, GroupBy by) {
  std::map<std::string, InfoGroup> groups;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    InfoGroup& group = groups[key_of(entry, by)];
    ++group.entries;
    add_size(group.bytes, entry);
  });
  std::vector<InfoGroup> sorted;
  for (auto& [key, group] : groups) {
    group.key = key;
    sorted.push_back(std::move(group));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const InfoGroup& a, const InfoGroup& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.entries > b.entries;
  });
  return sorted;
}

}  // namespace perfmap
