// SPDX-License-Identifier: MIT
#include "perfmap/info.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "map/name_count.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

std::uint64_t size_of(const Entry& entry) { return std::max<std::uint64_t>(entry.range.size, 1); }

/// What an entry adds to the group of its name. A 64-bit hash identifies the name.
struct Share {
  std::uint64_t hash;
  std::uint64_t bytes;
  std::uint64_t offset;
};

std::uint64_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

/// The name of the group, read from its line a second time; nothing if the line has changed.
std::optional<std::string> name_again(const Map& map, const Share& share) {
  const std::optional<Entry> entry = map.entry_at(share.offset);
  std::optional<std::string> name;
  if (entry) name = without_tier(entry->name);
  return name && hash_of(*name) == share.hash ? name : std::nullopt;
}

/// Sorting needs a tenth of the time and memory of a hash table keyed by name: there may be as many
/// names as entries.
std::vector<InfoGroup> group_by_name(const Map& map, Diagnostics& problems) {
  std::vector<Share> shares;
  map.for_each(problems, [&](const Entry& entry) {
    shares.push_back({hash_of(without_tier(entry.name)), size_of(entry), entry.offset});
  });
  std::sort(shares.begin(), shares.end(),
            [](const Share& a, const Share& b) { return a.hash < b.hash; });
  std::vector<InfoGroup> groups;
  for (auto at = shares.begin(); at != shares.end();) {
    InfoGroup group;
    const std::uint64_t hash = at->hash;
    std::optional<std::string> name;
    for (; at != shares.end() && at->hash == hash; ++at) {
      ++group.entries;
      add_size(group.bytes, at->bytes);
      if (!name) name = name_again(map, *at);
    }
    if (!name) continue;  // all of its lines have changed since they were counted
    group.key = *std::move(name);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string key_of(const Entry& entry, GroupBy by) {
  const DecodedName decoded = decode_name(entry.name);
  if (by == GroupBy::tier) return std::string(decoded.tier);
  const std::size_t colon = entry.name.find(':');
  const bool is_kind = runtime_info(decoded.runtime).names.has_colon_prefix;
  const bool marked = is_kind && colon != std::string_view::npos && colon != 0 &&
                      entry.name.substr(0, colon).find_first_of(" /(") == std::string_view::npos;
  return std::string(marked ? entry.name.substr(0, colon) : to_string(decoded.runtime));
}

std::vector<InfoGroup> group_by_key(const Map& map, GroupBy by, Diagnostics& problems) {
  std::map<std::string, InfoGroup> groups;
  map.for_each(problems, [&](const Entry& entry) {
    InfoGroup& group = groups[key_of(entry, by)];
    ++group.entries;
    add_size(group.bytes, size_of(entry));
  });
  std::vector<InfoGroup> list;
  for (auto& [key, group] : groups) {
    group.key = key;
    list.push_back(std::move(group));
  }
  return list;
}

}  // namespace

MapInfo map_info(const Index& index, const Diagnostics& problems) {
  const Map& map = index.maps().front();
  MapInfo info;
  info.bytes = map.text().size();
  info.lost_lines = problems.total() - problems.count_of(rule::kAddressWrap);
  NameCount names;
  names.reserve(index.entry_count());
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    ++info.entries;
    add_size(info.claimed, size_of(entry));
    names.add(entry.name);
  });
  info.names = names.different();
  info.runtime = names.runtime();
  const std::size_t count = index.segment_count();
  for (std::size_t i = 0; i < count; ++i) add_size(info.covered, index.segment(i).range.size);
  if (count != 0) {
    info.first = index.segment(0).range.begin;
    const AddressRange last = index.segment(count - 1).range;
    info.last = last.begin + (last.size - 1);
  }
  return info;
}

std::vector<InfoGroup> group_entries(const Map& map, GroupBy by, Diagnostics& problems) {
  std::vector<InfoGroup> groups =
      by == GroupBy::name ? group_by_name(map, problems) : group_by_key(map, by, problems);
  std::sort(groups.begin(), groups.end(), [](const InfoGroup& a, const InfoGroup& b) {
    return std::tie(b.bytes, b.entries, a.key) < std::tie(a.bytes, a.entries, b.key);
  });
  return groups;
}

}  // namespace perfmap
