// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "base/mmap_vector.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

/// An entry with a copy of its stable name: a process that may write to the file can change its
/// bytes at any time, even between two comparisons of a sort.
struct Named {
  std::string_view name;
  AddressRange range;

  friend bool operator==(const Named&, const Named&) = default;
  friend bool operator<(const Named& a, const Named& b) noexcept {
    return std::tie(a.name, a.range.begin, a.range.size) <
           std::tie(b.name, b.range.begin, b.range.size);
  }
};

/// The distinct entries of a map, sorted by name and then by range.
class SortedEntries {
 public:
  SortedEntries(const Map& map, Diagnostics& problems) {
    // Names are parts of different lines, and stable_name() makes none longer, so all of them have
    // room in as many bytes as the text has. Memory that no name is copied to is never touched.
    names_.make_room(map.text().size());
    map.for_each(problems, [&](const Entry& entry) {
      entries_.push_back({copy_of(stable_name(std::string(entry.name))), entry.range});
    });
    std::sort(entries_.begin(), entries_.end());
    entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
  }

  std::span<const Named> all() const noexcept { return entries_; }

 private:
  std::string_view copy_of(std::string_view name) noexcept {
    const std::size_t at = names_.size();
    names_.resize(at + name.size());
    name.copy(names_.data() + at, name.size());
    return {names_.data() + at, name.size()};
  }

  MmapVector<char> names_;
  std::vector<Named> entries_;
};

/// Removes all entries of the first name from the front and returns them.
std::span<const Named> take_name(std::span<const Named>& entries, std::string_view name) {
  std::size_t count = 0;
  while (count < entries.size() && entries[count].name == name) ++count;
  const auto taken = entries.first(count);
  entries = entries.subspan(count);
  return taken;
}

/// The ranges of `a` that are not in `b`; both ascend, and all have one name.
std::vector<AddressRange> only_in(std::span<const Named> a, std::span<const Named> b) {
  std::vector<AddressRange> ranges;
  const auto less = [](const Named& x, const Named& y) {
    return std::tuple(x.range.begin, x.range.size) < std::tuple(y.range.begin, y.range.size);
  };
  for (const Named& entry : a) {
    if (!std::binary_search(b.begin(), b.end(), entry, less)) ranges.push_back(entry.range);
  }
  return ranges;
}

constexpr std::size_t kAlone = std::numeric_limits<std::size_t>::max();

/// For each removed range, the index of its partner among the added ranges, or kAlone; and which
/// added ranges have a partner.
struct Pairs {
  std::vector<std::size_t> partner;
  std::vector<bool> taken;
};

std::vector<std::size_t> by_size(const std::vector<AddressRange>& ranges) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranges[a].size < ranges[b].size; });
  return order;
}

Pairs pair_up(const std::vector<AddressRange>& gone, const std::vector<AddressRange>& fresh) {
  Pairs pairs{std::vector<std::size_t>(gone.size(), kAlone), std::vector<bool>(fresh.size())};
  const auto join = [&](std::size_t from, std::size_t to) {
    pairs.partner[from] = to;
    pairs.taken[to] = true;
  };
  const std::vector<std::size_t> froms = by_size(gone);
  const std::vector<std::size_t> tos = by_size(fresh);
  for (std::size_t i = 0, j = 0; i < froms.size() && j < tos.size();) {
    const std::uint64_t from = gone[froms[i]].size;
    const std::uint64_t to = fresh[tos[j]].size;
    if (from == to) join(froms[i], tos[j]);
    i += from <= to ? 1 : 0;
    j += to <= from ? 1 : 0;
  }
  for (std::size_t i = 0, j = 0; i < gone.size(); ++i) {
    while (j < fresh.size() && pairs.taken[j]) ++j;
    if (j == fresh.size()) break;
    if (pairs.partner[i] == kAlone) join(i, j);
  }
  return pairs;
}

using Visit = std::function<void(const NameChange&)>;

std::uint64_t visit_changes(std::string_view name, const std::vector<AddressRange>& gone,
                            const std::vector<AddressRange>& fresh, const Visit& visit) {
  const Pairs pairs = pair_up(gone, fresh);
  std::uint64_t changes = gone.size();
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const bool moved = pairs.partner[i] != kAlone;
    visit({moved ? NameChange::Kind::moved : NameChange::Kind::vanished, name, gone[i],
           moved ? fresh[pairs.partner[i]] : AddressRange{}});
  }
  for (std::size_t j = 0; j < fresh.size(); ++j) {
    if (pairs.taken[j]) continue;
    visit({NameChange::Kind::appeared, name, AddressRange{}, fresh[j]});
    ++changes;
  }
  return changes;
}

}  // namespace

std::uint64_t diff_maps(const Map& before, const Map& after, Diagnostics& problems,
                        const std::function<void(const NameChange&)>& visit) {
  const SortedEntries all_old(before, problems);
  const SortedEntries all_new(after, problems);
  std::span<const Named> old_rest = all_old.all();
  std::span<const Named> new_rest = all_new.all();
  std::uint64_t changes = 0;
  while (!old_rest.empty() || !new_rest.empty()) {
    const bool old_first =
        new_rest.empty() || (!old_rest.empty() && old_rest.front().name < new_rest.front().name);
    const std::string_view name = old_first ? old_rest.front().name : new_rest.front().name;
    const auto was = take_name(old_rest, name);
    const auto is = take_name(new_rest, name);
    changes += visit_changes(name, only_in(was, is), only_in(is, was), visit);
  }
  return changes;
}

}  // namespace perfmap
