#include "perfmap/diff.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

namespace perfmap {
namespace {

/// The different entries of a map, by name and then by range.
std::vector<Entry> sorted_entries(const Map& map) {
  std::vector<Entry> entries;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) { entries.push_back(entry); });
  const auto key = [](const Entry& entry) {
    return std::tuple(entry.name, entry.range.begin, entry.range.size);
  };
  std::sort(entries.begin(), entries.end(),
            [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  const auto end = std::unique(entries.begin(), entries.end(),
                               [&](const Entry& a, const Entry& b) { return key(a) == key(b); });
  entries.erase(end, entries.end());
  return entries;
}

/// Takes all entries of the first name off the front.
std::span<const Entry> take_name(std::span<const Entry>& entries, std::string_view name) {
  std::size_t count = 0;
  while (count < entries.size() && entries[count].name == name) ++count;
  const auto taken = entries.first(count);
  entries = entries.subspan(count);
  return taken;
}

/// The ranges of `a` that `b` has not; both ascend.
std::vector<AddressRange> only_in(std::span<const Entry> a, std::span<const Entry> b) {
  std::vector<AddressRange> ranges;
  const auto less = [](const Entry& x, const Entry& y) {
    return std::tuple(x.range.begin, x.range.size) < std::tuple(y.range.begin, y.range.size);
  };
  for (const Entry& entry : a) {
    if (!std::binary_search(b.begin(), b.end(), entry, less)) ranges.push_back(entry.range);
  }
  return ranges;
}

}  // namespace

std::uint64_t diff_maps(const Map& before, const Map& after,
                        const std::function<void(const NameChange&)>& visit) {
  const std::vector<Entry> all_old = sorted_entries(before);
  const std::vector<Entry> all_new = sorted_entries(after);
  std::span<const Entry> old_rest(all_old);
  std::span<const Entry> new_rest(all_new);
  std::uint64_t changes = 0;
  while (!old_rest.empty() || !new_rest.empty()) {
    const bool old_first =
        new_rest.empty() || (!old_rest.empty() && old_rest.front().name < new_rest.front().name);
    const std::string_view name = old_first ? old_rest.front().name : new_rest.front().name;
    const auto was = take_name(old_rest, name);
    const auto is = take_name(new_rest, name);
    const std::vector<AddressRange> gone = only_in(was, is);
    const std::vector<AddressRange> fresh = only_in(is, was);
    const std::size_t pairs = std::min(gone.size(), fresh.size());
    for (std::size_t i = 0; i < std::max(gone.size(), fresh.size()); ++i) {
      const auto kind = i < pairs         ? NameChange::Kind::moved
                        : i < gone.size() ? NameChange::Kind::vanished
                                          : NameChange::Kind::appeared;
      visit({kind, name, i < gone.size() ? gone[i] : AddressRange{},
             i < fresh.size() ? fresh[i] : AddressRange{}});
      ++changes;
    }
  }
  return changes;
}

}  // namespace perfmap
