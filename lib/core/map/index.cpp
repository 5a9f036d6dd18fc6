// SPDX-License-Identifier: MIT
#include "perfmap/index.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "base/utf8.hpp"
#include "map/map_scan.hpp"
#include "map/segments.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

namespace {

/// The symbol tree of perf 6: a red-black tree ordered by start address. Equal starts go to the
/// right; it is balanced like the kernel's lib/rbtree.c. A search stops at the first node on its
/// path that contains the address, so the answers depend on the order of the lines.
/// Source: tools/perf/util/symbol.c, __symbols__insert and symbols__find.
class PerfTree {
 public:
  void insert(const AddressRange& range, std::uint64_t line);
  /// The line of the symbol that perf would report; UINT64_MAX if there is none. O(log n).
  std::uint64_t find(Address address) const noexcept;
  std::size_t size() const noexcept { return nodes_.size(); }

 private:
  using Link = std::uint32_t;
  static constexpr Link kNone = UINT32_MAX;
  struct Node {
    std::uint64_t begin;
    std::uint64_t end;  // begin + size, which may wrap: perf does not check
    std::uint64_t line;
    Link child[2] = {kNone, kNone};
    Link parent = kNone;
    bool red = true;
  };

  void rotate(Link pivot, int side) noexcept;
  void rebalance(Link node) noexcept;

  std::vector<Node> nodes_;
  Link root_ = kNone;
};

void PerfTree::insert(const AddressRange& range, std::uint64_t line) {
  if (nodes_.size() >= kNone - 1) throw std::bad_alloc();
  const auto fresh = static_cast<Link>(nodes_.size());
  nodes_.push_back({.begin = range.begin, .end = range.begin + range.size, .line = line});
  Link parent = kNone;
  int side = 0;
  for (Link at = root_; at != kNone; at = nodes_[at].child[side]) {
    parent = at;
    side = range.begin < nodes_[at].begin ? 0 : 1;
  }
  nodes_[fresh].parent = parent;
  if (parent == kNone) {
    root_ = fresh;
  } else {
    nodes_[parent].child[side] = fresh;
  }
  rebalance(fresh);
}

/// Moves `pivot` down to `side`; its child on the other side takes its place.
void PerfTree::rotate(Link pivot, int side) noexcept {
  const Link up = nodes_[pivot].child[1 - side];
  const Link inner = nodes_[up].child[side];
  const Link parent = nodes_[pivot].parent;
  nodes_[pivot].child[1 - side] = inner;
  if (inner != kNone) nodes_[inner].parent = pivot;
  nodes_[up].child[side] = pivot;
  nodes_[up].parent = parent;
  nodes_[pivot].parent = up;
  if (parent == kNone) {
    root_ = up;
  } else {
    nodes_[parent].child[nodes_[parent].child[1] == pivot ? 1 : 0] = up;
  }
}

void PerfTree::rebalance(Link node) noexcept {
  for (;;) {
    const Link parent = nodes_[node].parent;
    if (parent == kNone || !nodes_[parent].red) break;
    const Link grandparent = nodes_[parent].parent;
    const int side = nodes_[grandparent].child[0] == parent ? 0 : 1;
    const Link uncle = nodes_[grandparent].child[1 - side];
    if (uncle != kNone && nodes_[uncle].red) {
      nodes_[uncle].red = nodes_[parent].red = false;
      nodes_[grandparent].red = true;
      node = grandparent;
      continue;
    }
    if (nodes_[parent].child[1 - side] == node) rotate(parent, side);
    const Link top = nodes_[grandparent].child[side];
    rotate(grandparent, 1 - side);
    nodes_[top].red = false;
    nodes_[grandparent].red = true;
    break;
  }
  nodes_[root_].red = false;
}

std::uint64_t PerfTree::find(Address address) const noexcept {
  for (Link at = root_; at != kNone;) {
    const Node& node = nodes_[at];
    if (address < node.begin) {
      at = node.child[0];
    } else if (address > node.end || (address == node.end && address != node.begin)) {
      at = node.child[1];
    } else {
      return node.line;
    }
  }
  return UINT64_MAX;
}

/// The best answer so far for each address; entries are offered in file order.
class Answers {
 public:
  Answers(Overlap overlap, std::span<const Map> maps, std::span<const Address> addresses)
      : overlap_(overlap),
        maps_(maps),
        addresses_(addresses),
        best_(addresses.size(), {0, UINT64_MAX}) {}

  /// From now on also compares names, to detect addresses with several names in one map.
  void look_for_reuse() { first_of_map_.resize(addresses_.size()); }

  void offer(std::uint64_t begin, std::uint64_t size, std::uint64_t line) {
    const std::uint64_t reach = std::max<std::uint64_t>(size, 1);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] - begin >= reach) continue;
      take(best_[i], {reach, line});
      if (!first_of_map_.empty()) compare(first_of_map_[i], line);
    }
  }
  /// Takes over the answers of a later part of the same maps.
  void join(const Answers& later) {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      if (later.best_[i].line != UINT64_MAX) take(best_[i], later.best_[i]);
      if (first_of_map_.empty()) continue;
      for (const auto& [map, first] : later.first_of_map_[i]) {
        compare(first_of_map_[i], first.line);
        first_of_map_[i].at(map).has_rival |= first.has_rival;
      }
    }
  }
  void write_reused(std::span<bool> reused) const noexcept {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const auto& maps = first_of_map_[i];
      const auto of_map = maps.find(EntryRef{best_[i].line}.map());
      reused[i] = of_map != maps.end() && of_map->second.has_rival;
    }
  }
  void write(std::span<EntryRef> hits) const noexcept {
    for (std::size_t i = 0; i < best_.size(); ++i) hits[i] = EntryRef{best_[i].line};
  }

 private:
  void take(OverlapPolicy::Rank& best, const OverlapPolicy::Rank& offered) const noexcept {
    const bool nobody_yet = best.line == UINT64_MAX;
    if (nobody_yet || OverlapPolicy(overlap_, {}).wins(offered, best)) best = offered;
  }

  /// The first entry of a map at an address, and whether another entry there has another name.
  struct First {
    std::uint64_t line;
    bool has_rival = false;
  };
  using Firsts = std::map<std::uint64_t, First>;  // by map

  void compare(Firsts& firsts, std::uint64_t line) const {
    First& first = firsts.try_emplace(EntryRef{line}.map(), First{line}).first->second;
    if (!first.has_rival) first.has_rival = are_rivals(first.line, line, maps_);
  }

  Overlap overlap_;
  std::span<const Map> maps_;
  std::span<const Address> addresses_;
  std::vector<OverlapPolicy::Rank> best_;
  std::vector<Firsts> first_of_map_;  // of each address
};

struct Offer {
  Answers& answers;
  std::uint64_t tag;

  void expect(std::size_t) const noexcept {}
  void operator()(const AddressRange& range, std::uint64_t offset) const {
    answers.offer(range.begin, range.size, tag | offset);
  }
};

/// What a thread found in a part of a map.
struct PartAnswers {
  Answers answers;
  Diagnostics problems;
  std::uint64_t lines = 0;
};

/// Scans one map on several threads. `empty`: answers and problems to which nothing was added.
void offer_in_parts(const Map& map, std::uint64_t tag, const std::vector<std::uint64_t>& ends,
                    unsigned threads, const PartAnswers& empty, Answers& answers,
                    Diagnostics& problems) {
  std::vector<PartAnswers> parts(ends.size(), empty);
  const ChunkReader::File file = ChunkReader::file_of(map.input());
  std::atomic<std::uint64_t> bytes_read{0};
  const auto caller = std::this_thread::get_id();
  const auto note = [&](const Window& window) {
    const std::uint64_t before = bytes_read.fetch_add(window.text.size());
    if (std::this_thread::get_id() == caller) map.note_progress(before);
  };
  parallel_for(ends.size(), threads, [&](std::size_t i) {
    PartAnswers& part = parts[i];
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    part.lines = for_each_range(ChunkReader(file, map.text().substr(0, ends[i]), begin), 0,
                                part.problems, note, Offer{part.answers, tag});
  });
  std::uint64_t line = 1;
  for (const PartAnswers& part : parts) {
    answers.join(part.answers);
    problems.add_all(part.problems, line);
    line += part.lines;
  }
}

/// About a millisecond of work, so that the answers of a part cost little beside it.
constexpr std::uint64_t kPartBytes = std::uint64_t{4} << 20;

constexpr std::array<std::string_view, 4> kOverlapNames = {"last", "first", "inner", "perf"};

/// The line at `offset` with its newline, like perf's getline().
std::string_view line_at(std::string_view text, std::uint64_t offset) noexcept {
  const std::string_view rest = without_first(text, offset);
  const std::size_t newline = rest.find('\n');
  return newline == std::string_view::npos ? rest : rest.substr(0, newline + 1);
}

}  // namespace

std::vector<std::uint64_t> ends_of_parts(std::string_view text, std::uint64_t bytes) {
  std::vector<std::uint64_t> ends;
  for (std::uint64_t end = 0; end < text.size();) {
    const std::size_t newline = text.find('\n', std::min(end + bytes - 1, text.size()));
    end = newline == std::string_view::npos ? text.size() : newline + 1;
    ends.push_back(end);
  }
  return ends;
}

void find_by_scan_of_parts(std::span<const Map> maps, Overlap overlap,
                           std::span<const Address> addresses, std::span<EntryRef> hits,
                           std::span<bool> reused, Diagnostics& problems, unsigned threads,
                           std::uint64_t part_bytes) {
  Answers answers(overlap, maps, addresses);
  if (!reused.empty()) answers.look_for_reuse();
  const PartAnswers empty{answers, problems.without_items(), 0};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::uint64_t tag = std::uint64_t{i} << kMapShift;
    if (threads > 1 && maps[i].text().size() > part_bytes) {
      offer_in_parts(maps[i], tag, ends_of_parts(maps[i].text(), part_bytes), threads, empty,
                     answers, problems);
    } else {
      for_each_range(maps[i], 0, 1, problems, Offer{answers, tag});
    }
  }
  answers.write(hits);
  if (!reused.empty()) answers.write_reused(reused);
}

void find_by_scan(std::span<const Map> maps, Overlap overlap, std::span<const Address> addresses,
                  std::span<EntryRef> hits, std::span<bool> reused, Diagnostics& problems,
                  unsigned threads) {
  find_by_scan_of_parts(maps, overlap, addresses, hits, reused, problems, threads, kPartBytes);
}

std::optional<Entry> entry_of(std::span<const Map> maps, EntryRef hit) noexcept {
  return maps[hit.map()].entry_at(hit.offset());
}

std::optional<Overlap> parse_overlap(std::string_view name) noexcept {
  const auto* const found = std::find(kOverlapNames.begin(), kOverlapNames.end(), name);
  if (found == kOverlapNames.end()) return std::nullopt;
  return static_cast<Overlap>(found - kOverlapNames.begin());
}

std::string_view to_string(Overlap overlap) noexcept {
  return kOverlapNames[static_cast<std::size_t>(overlap)];
}

/// Runs are kept like in a log-structured merge tree: refresh() adds a run, and runs of similar
/// size are merged. So each entry takes part in O(log n) merges.
struct Index::State {
  /// How far a map has been read.
  struct Progress {
    std::uint64_t offset = 0;
    std::uint64_t line = 1;
    std::uint64_t seen = 0;       ///< bytes in the map at the last read
    std::uint64_t half_read = 0;  ///< 0 or 1 entries read after `offset` (unfinished line)
  };

  std::vector<Map> maps;
  Overlap overlap = Overlap::last;
  std::vector<Progress> progress;
  std::vector<SegmentTable> runs;
  PerfTree tree;
  std::uint64_t entries = 0;

  OverlapPolicy precedence() const noexcept { return {overlap, maps}; }

  void read_all(Diagnostics& problems) {
    runs.clear();
    tree = {};
    entries = 0;
    progress.assign(maps.size(), {});
    read_new(problems);
  }

  void read_new(Diagnostics& problems) {
    Columns fresh;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      if (maps[i].text().size() != progress[i].seen) read_new_of(i, fresh, problems);
    }
    if (fresh.count() == 0) return;
    entries += fresh.count();
    sort_columns(fresh);
    runs.push_back(make_run(std::move(fresh), precedence()));
    while (runs.size() > 1 && runs.back().count() * 2 >= runs[runs.size() - 2].count())
      merge_last();
  }

  void read_new_of(std::size_t number, Columns& fresh, Diagnostics& problems) {
    Progress& done = progress[number];
    entries -= done.half_read;
    if (overlap == Overlap::perf) {
      read_as_perf(number);
    } else {
      const std::size_t before = problems.items().size();
      done.line = read_columns(maps[number], number, done.offset, done.line, fresh, problems);
      for (std::size_t k = before; k < problems.items().size(); ++k) {
        problems.items()[k].map = static_cast<std::uint32_t>(number);
      }
    }
    done.seen = done.offset = maps[number].text().size();
    done.half_read = 0;
    if (done.seen != 0 && maps[number].text().back() != '\n') step_back(number);
  }

  /// A last line without newline may be unfinished. It is read again when the file has grown, and
  /// the later content counts. If it already was an entry, its range and rank stay, because only
  /// its name can grow.
  void step_back(std::size_t number) {
    Progress& done = progress[number];
    done.offset = maps[number].text().rfind('\n') + 1;  // npos + 1 is 0
    --done.line;
    done.half_read = read_entry(number, done.offset).has_value() ? 1 : 0;
  }

  /// The shape of perf's tree, and so its answers, depend on what was inserted and how often, so an
  /// entry that was read unfinished forces a rebuild.
  bool must_begin_again() const noexcept {
    return overlap == Overlap::perf &&
           std::any_of(progress.begin(), progress.end(),
                       [](const Progress& done) { return done.half_read != 0; });
  }

  std::optional<Entry> read_entry(std::size_t number, std::uint64_t offset) const noexcept {
    const Map& map = maps[number];
    if (overlap != Overlap::perf) return map.entry_at(offset);
    if (map.input().was_truncated()) return std::nullopt;
    return read_perf_line(line_at(map.text(), offset), offset);
  }

  /// The line of a hit, which may be empty. A usual line ends in the second cache line.
  void prefetch(EntryRef hit) const noexcept {
    if (!hit) return;
    constexpr std::size_t kCacheLine = 64;
    const char* const line = maps[hit.map()].text().data() + hit.offset();
    __builtin_prefetch(line);
    __builtin_prefetch(line + kCacheLine);
  }

  void merge_last() {
    SegmentTable merged = merge_runs(runs[runs.size() - 2], runs.back(), precedence());
    runs.pop_back();
    runs.back() = std::move(merged);
  }

  void read_as_perf(std::size_t number) {
    const std::string_view text = maps[number].text();
    const std::uint64_t tag = std::uint64_t{number} << kMapShift;
    for (std::uint64_t at = progress[number].offset; at < text.size();) {
      const std::string_view line = line_at(text, at);
      if (const auto entry = read_perf_line(line, at)) {
        tree.insert(entry->range, tag | at);
        ++entries;
      }
      at += line.size();
    }
  }

  /// The winner of two answers; each may be UINT64_MAX (no entry).
  std::uint64_t better(std::uint64_t a, std::uint64_t b) const noexcept {
    if (a == UINT64_MAX || b == UINT64_MAX) return std::min(a, b);
    const OverlapPolicy order = precedence();
    return order.wins(order.rank_of(b), order.rank_of(a)) ? b : a;
  }
};

Index::Index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems)
    : state_(std::make_unique<State>()) {
  state_->maps = std::move(maps);
  state_->overlap = overlap;
  state_->read_all(problems);
}

Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;
Index::~Index() = default;

std::span<const Map> Index::maps() const noexcept { return state_->maps; }
Overlap Index::overlap() const noexcept { return state_->overlap; }
std::uint64_t Index::entry_count() const noexcept { return state_->entries; }

bool Index::is_reused(Address address, EntryRef hit) const noexcept {
  const State& state = *state_;
  for (const SegmentTable& run : state.runs) {
    if (run.reused().contains(address, hit.map())) return true;
    if (state.runs.size() == 1) continue;
    const std::uint64_t line = run.find(address, state.maps);
    if (line != UINT64_MAX && are_rivals(line, hit.line, state.maps)) return true;
  }
  return false;
}

EntryRef Index::find(Address address) const noexcept {
  const State& state = *state_;
  if (state.overlap == Overlap::perf) return {state.tree.find(address)};
  std::uint64_t answer = UINT64_MAX;
  for (const SegmentTable& run : state.runs) {
    const std::uint64_t line = run.find(address, state.maps);
    answer = &run == &state.runs.front() ? line : state.better(answer, line);
  }
  return {answer};
}

void Index::find_all(std::span<const Address> addresses, std::span<EntryRef> hits) const noexcept {
  const State& state = *state_;
  if (state.overlap == Overlap::perf || state.runs.size() != 1) {
    std::transform(addresses.begin(), addresses.end(), hits.begin(),
                   [this](Address address) { return find(address); });
    return;
  }
  static_assert(sizeof(EntryRef) == sizeof(std::uint64_t));
  constexpr std::size_t kBlock = 1024;
  std::array<std::uint64_t, kBlock> lines;
  for (std::size_t done = 0; done < addresses.size(); done += kBlock) {
    const auto asked = addresses.subspan(done, std::min(kBlock, addresses.size() - done));
    state.runs.front().find_all(asked, lines.data(), state.maps);
    for (std::size_t i = 0; i < asked.size(); ++i) hits[done + i] = EntryRef{lines[i]};
  }
}

std::optional<Entry> Index::entry(EntryRef hit) const noexcept {
  return state_->read_entry(hit.map(), hit.offset());
}

void Index::entries(std::span<const EntryRef> hits,
                    std::span<std::optional<Entry>> entries) const noexcept {
  constexpr std::size_t kAhead = 16;
  for (const EntryRef hit : hits.first(std::min(kAhead, hits.size()))) state_->prefetch(hit);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (i + kAhead < hits.size()) state_->prefetch(hits[i + kAhead]);
    entries[i] = hits[i] ? entry(hits[i]) : std::nullopt;
  }
}

std::uint64_t Index::line_number(EntryRef hit) const {
  return state_->maps[hit.map()].line_number(hit.offset());
}

std::optional<Entry> Index::find_entry(Address address) const noexcept {
  const EntryRef hit = find(address);
  if (!hit) return std::nullopt;
  state_->prefetch(hit);
  return entry(hit);
}

const Index& Index::compact() {
  while (state_->runs.size() > 1) state_->merge_last();
  return *this;
}

std::size_t Index::segment_count() const noexcept {
  return state_->runs.empty() ? 0 : state_->runs.front().count();
}

Segment Index::segment(std::size_t position) const noexcept {
  return state_->runs.front().at(position, state_->maps);
}

Result<Growth> Index::refresh(Diagnostics& problems) {
  Growth all = Growth::unchanged;
  for (Map& map : state_->maps) {
    Result<Growth> growth = map.refresh();
    if (!growth) return growth;
    all = std::max(all, *growth);
  }
  if (all == Growth::unchanged) return all;
  if (all == Growth::replaced || state_->must_begin_again()) {
    state_->read_all(problems);
  } else {
    state_->read_new(problems);
  }
  return all;
}

}  // namespace perfmap
