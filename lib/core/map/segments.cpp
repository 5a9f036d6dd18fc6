// SPDX-License-Identifier: MIT
#include "map/segments.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "map/map_scan.hpp"

namespace perfmap {

namespace {

/// An estimate from the first lines. A high estimate costs only address space, not memory.
std::size_t expected_lines(std::string_view text) {
  constexpr std::size_t kSample = std::size_t{64} << 10;
  const std::string_view sample = text.substr(0, kSample);
  const auto lines = static_cast<std::size_t>(std::count(sample.begin(), sample.end(), '\n'));
  if (text.size() <= kSample) return lines + 1;
  return static_cast<std::size_t>(static_cast<double>(text.size()) / kSample * 1.1 *
                                  static_cast<double>(lines));
}

struct Append {
  Columns& out;
  std::uint64_t tag;

  void expect(std::size_t max) { out.make_room(max); }
  void operator()(const AddressRange& range, std::uint64_t offset) noexcept {
    out.append(range.begin, range.size, tag | offset);
  }
};

}  // namespace

std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems) {
  out.make_room(expected_lines(map.text().substr(offset)));
  return for_each_range(map, offset, line, problems,
                        Append{out, std::uint64_t{number} << kMapShift});
}

namespace {

std::string_view name_of(std::uint64_t line, std::span<const Map> maps) noexcept {
  const EntryRef hit{line};
  const auto entry = maps[hit.map()].entry_at(hit.offset());
  return entry ? entry->name : std::string_view();
}

/// How many open entries have each name. Few are different as a rule, and then a list is faster
/// than a table.
class NameCounts {
 public:
  std::size_t size() const noexcept { return many_.empty() ? few_.size() : many_.size(); }
  bool empty() const noexcept { return size() == 0; }

  void add(std::size_t name) {
    if (!many_.empty()) return void(++many_[name]);
    const auto known = std::ranges::find(few_, name, &Count::first);
    if (known != few_.end()) return void(++known->second);
    constexpr std::size_t kFew = 8;
    if (few_.size() < kFew) return void(few_.emplace_back(name, 1));
    many_.insert(few_.begin(), few_.end());
    few_.clear();
    ++many_[name];
  }
  /// It must have been added.
  void remove(std::size_t name) {
    if (many_.empty()) {
      const auto known = std::ranges::find(few_, name, &Count::first);
      if (--known->second != 0) return;
      *known = few_.back();
      few_.pop_back();
    } else if (const auto known = many_.find(name); --known->second == 0) {
      many_.erase(known);
    }
  }
  void clear() {
    few_.clear();
    many_.clear();
  }

 private:
  using Count = std::pair<std::size_t, std::uint64_t>;
  std::vector<Count> few_;
  std::unordered_map<std::size_t, std::uint64_t> many_;  // empty while few_ suffices
};

/// The entries of one map that contain the position of the sweep, and how many of them share a
/// name.
class OpenEntries {
 public:
  OpenEntries(std::uint64_t map, std::span<const Map> maps) : map_(map), maps_(maps) {}

  bool empty() const noexcept { return open_.empty(); }
  /// Advances to `at`, where the next entry begins. Stretches before it that have several names go
  /// to `reused`.
  void advance(Address at, ReusedAddresses& reused) {
    while (!open_.empty() && open_.front().last < at) close_first(reused);
    if (at > at_) say_until(at - 1, reused);
    at_ = at;
  }
  void open(Address last, std::uint64_t line) {
    // Alone, an entry's name does not matter, so it is read only when a second entry opens.
    if (open_.size() == 1 && names_.empty()) {
      open_.front().name = hash_of(open_.front().line);
      names_.add(open_.front().name);
    }
    const std::size_t name = open_.empty() ? 0 : hash_of(line);
    if (!open_.empty()) names_.add(name);
    open_.push_back({last, line, name});
    std::push_heap(open_.begin(), open_.end(), ends_later);
  }
  void finish(ReusedAddresses& reused) {
    while (!open_.empty()) close_first(reused);
  }

 private:
  struct Open {
    Address last;
    std::uint64_t line;
    std::size_t name;  // its hash
  };
  static bool ends_later(const Open& a, const Open& b) noexcept { return a.last > b.last; }

  std::size_t hash_of(std::uint64_t line) const noexcept {
    return std::hash<std::string_view>{}(name_of(line, maps_));
  }

  void say_until(Address last, ReusedAddresses& reused) const {
    if (names_.size() > 1 && at_ <= last) reused.add(at_, last, map_);
  }

  void close_first(ReusedAddresses& reused) {
    std::pop_heap(open_.begin(), open_.end(), ends_later);
    const Open closed = open_.back();
    open_.pop_back();
    say_until(closed.last, reused);
    at_ = closed.last == UINT64_MAX ? closed.last : closed.last + 1;
    if (open_.empty()) {
      names_.clear();
    } else {
      names_.remove(closed.name);
    }
  }

  std::uint64_t map_;
  std::span<const Map> maps_;
  Address at_ = 0;
  std::vector<Open> open_;  // a min-heap by end
  NameCounts names_;
};

/// Fetches the beginnings of lines whose names will be compared soon: they are anywhere in the map.
void prefetch_line(std::uint64_t line, std::span<const Map> maps) noexcept {
  constexpr std::size_t kCacheLine = 64;
  const EntryRef hit{line};
  const char* const begin = maps[hit.map()].text().data() + hit.offset();
  __builtin_prefetch(begin);
  __builtin_prefetch(begin + kCacheLine);
}

}  // namespace

void ReusedAddresses::settle() {
  const auto key = [](const Span& span) { return std::tuple(span.map, span.first, span.last); };
  const auto is_before = [&](const Span& a, const Span& b) { return key(a) < key(b); };
  if (!std::is_sorted(spans_.begin(), spans_.end(), is_before)) {
    std::sort(spans_.begin(), spans_.end(), is_before);
  }
  std::size_t kept = 0;
  for (const Span& span : spans_) {
    Span* const before = kept == 0 ? nullptr : &spans_[kept - 1];
    const bool joins = before != nullptr && before->map == span.map &&
                       (span.first <= before->last || span.first == before->last + 1);
    if (joins) {
      before->last = std::max(before->last, span.last);
    } else {
      spans_[kept++] = span;
    }
  }
  spans_.resize(kept);
  spans_.shrink_to_fit();
}

bool ReusedAddresses::contains(Address address, std::uint64_t map) const noexcept {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), std::tuple(map, address),
                       [](const std::tuple<std::uint64_t, Address>& wanted, const Span& span) {
                         return wanted < std::tuple(span.map, span.first);
                       });
  return after != spans_.begin() && after[-1].map == map && address <= after[-1].last;
}

ReusedAddresses find_reused(const Columns& sorted, std::span<const Map> maps) {
  constexpr std::size_t kAhead = 12;
  ReusedAddresses reused;
  std::vector<OpenEntries> of_maps;
  for (std::size_t map = 0; map < maps.size(); ++map) of_maps.emplace_back(map, maps);
  const std::size_t count = sorted.count();
  // Whether the next entry may begin in this one.
  const auto reaches_next = [&](std::size_t i) {
    const bool is_before = i + 1 < count && sorted.begin[i + 1] - sorted.begin[i] < sorted.size[i];
    return is_before || sorted.size[i] == kTooLong;
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead + 1 < count && reaches_next(i + kAhead)) {
      prefetch_line(sorted.line[i + kAhead], maps);
      prefetch_line(sorted.line[i + kAhead + 1], maps);
    }
    const std::uint64_t line = sorted.line[i];
    OpenEntries& open = of_maps[EntryRef{line}.map()];
    open.advance(sorted.begin[i], reused);
    const bool is_alone = open.empty() && !reaches_next(i);
    if (!is_alone) open.open(last_of(sorted.begin[i], sorted.size[i], line, maps), line);
  }
  for (OpenEntries& open : of_maps) open.finish(reused);
  reused.settle();
  return reused;
}

bool are_rivals(std::uint64_t line, std::uint64_t other, std::span<const Map> maps) noexcept {
  return line != other && EntryRef{line}.map() == EntryRef{other}.map() &&
         name_of(line, maps) != name_of(other, maps);
}

OverlapPolicy::Rank OverlapPolicy::rank_of(std::uint64_t line) const noexcept {
  if (overlap_ != Overlap::inner) return {0, line};
  const EntryRef hit{line};
  const auto entry = maps_[hit.map()].entry_at(hit.offset());
  return {entry ? std::max<std::uint64_t>(entry->range.size, 1) : 0, line};
}

SegmentTable::SegmentTable(Columns segments, ReusedAddresses reused)
    : segments_(std::move(segments)),
      reused_(std::move(reused)),
      tree_({segments_.begin.data(), segments_.count()}) {}

std::size_t SegmentTable::gallop(std::size_t from, std::uint64_t address) const noexcept {
  const std::uint64_t* const begins = segments_.begin.data();
  const std::size_t count = segments_.count();
  std::size_t step = 1;
  std::size_t low = from;  // everything before it is at most the address
  while (low + step <= count && begins[low + step - 1] <= address) {
    low += step;
    step *= 2;
  }
  const std::size_t high = std::min(low + step, count);
  return static_cast<std::size_t>(std::upper_bound(begins + low, begins + high, address) - begins);
}

std::uint64_t SegmentTable::last_at(std::size_t position,
                                    std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t last = last_of(begin, size, segments_.line[position], maps);
  if (size != kTooLong || position + 1 == segments_.count()) return last;
  return std::min(last, segments_.begin[position + 1] - 1);
}

std::uint64_t SegmentTable::answer(std::size_t after, std::uint64_t address,
                                   std::span<const Map> maps) const noexcept {
  if (after == 0) return UINT64_MAX;
  const std::size_t position = after - 1;
  const std::uint32_t size = segments_.size[position];
  const std::uint64_t distance = address - segments_.begin[position];
  const bool covers = size != kTooLong ? distance < size : address <= last_at(position, maps);
  return covers ? segments_.line[position] : UINT64_MAX;
}

void SegmentTable::prefetch_answers(const std::size_t* positions) const noexcept {
  for (std::size_t i = 0; i < kSearchGroup; ++i) {
    if (positions[i] == 0) continue;
    __builtin_prefetch(segments_.size.data() + positions[i] - 1);
    __builtin_prefetch(segments_.line.data() + positions[i] - 1);
  }
}

std::uint64_t SegmentTable::find(std::uint64_t address, std::span<const Map> maps) const noexcept {
  return answer(search().one(tree_.levels(), payload(), address), address, maps);
}

void SegmentTable::find_all(std::span<const Address> addresses, std::uint64_t* lines,
                            std::span<const Map> maps) const noexcept {
  std::size_t done = 0;
  std::size_t after = 0;  // position of the previous address
  while (done < addresses.size()) {
    const std::size_t group = std::min(kSearchGroup, addresses.size() - done);
    const Address* const asked = addresses.data() + done;
    if (std::is_sorted(asked - (done != 0 ? 1 : 0), asked + group)) {
      for (std::size_t i = 0; i < group; ++i) {
        after = gallop(after, asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else if (group < kSearchGroup) {
      for (std::size_t i = 0; i < group; ++i) {
        after = search().one(tree_.levels(), payload(), asked[i]);
        lines[done + i] = answer(after, asked[i], maps);
      }
    } else {
      std::size_t positions[kSearchGroup];
      search().group(tree_.levels(), asked, positions);
      prefetch_answers(positions);
      for (std::size_t i = 0; i < kSearchGroup; ++i) {
        lines[done + i] = answer(positions[i], asked[i], maps);
      }
      after = positions[kSearchGroup - 1];
    }
    done += group;
  }
}

Segment SegmentTable::at(std::size_t position, std::span<const Map> maps) const noexcept {
  const std::uint64_t begin = segments_.begin[position];
  return {{begin, last_at(position, maps) - begin + 1}, EntryRef{segments_.line[position]}};
}

namespace {

/// Collects segments in address order; adjacent segments with the same owner become one.
class Segments {
 public:
  /// Takes room for this many more; only the used part becomes memory.
  void expect(std::size_t count) { columns_.make_room(count); }
  /// `last` is inclusive, because the end of the last address has no 64-bit value. There must be
  /// room.
  void add(std::uint64_t begin, std::uint64_t last, std::uint64_t line) {
    if (begin != 0 && last_ == begin - 1 && !columns_.line.empty() &&
        columns_.line.back() == line) {
      columns_.size.back() = short_size(last - columns_.begin.back() + 1);
    } else {
      columns_.append(begin, last - begin + 1, line);
    }
    last_ = last;
  }
  SegmentTable finish(ReusedAddresses reused) {
    columns_.shrink();
    return SegmentTable(std::move(columns_), std::move(reused));
  }

 private:
  Columns columns_;
  std::uint64_t last_ = 0;
};

/// Sweeps over the entries in address order. `live_` is a heap of the entries that have begun, with
/// the winner on top. Entries that have ended are removed when they reach the top, or all of them
/// when the last one has ended.
class Sweep {
  struct Live {
    std::uint64_t last;
    OverlapPolicy::Rank rank;
  };
  auto order() const {
    return [this](const Live& a, const Live& b) { return precedence_.wins(b.rank, a.rank); };
  }

 public:
  Sweep(const Columns& sorted, const OverlapPolicy& precedence)
      : sorted_(sorted), precedence_(precedence) {}

  SegmentTable run() {
    const std::size_t count = sorted_.count();
    out_.expect(2 * count);  // each entry begins a segment, and ends one
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t begin = sorted_.begin[i];
      const std::uint64_t line = sorted_.line[i];
      const std::uint64_t last = last_of(begin, sorted_.size[i], line, precedence_.maps());
      if (begin != 0) settle(begin - 1);
      if (begin > reached_) live_.clear();  // they have all ended
      const bool is_alone =
          live_.empty() && last != UINT64_MAX && (i + 1 == count || sorted_.begin[i + 1] > last);
      if (is_alone) {
        out_.add(begin, last, line);
        position_ = last + 1;
        continue;
      }
      live_.push_back({last, {last - begin + 1, line}});
      std::push_heap(live_.begin(), live_.end(), order());
      reached_ = std::max(reached_, last);
    }
    settle(UINT64_MAX);
    return out_.finish(find_reused(sorted_, precedence_.maps()));
  }

 private:
  /// Assigns everything from position_ up to `until`, which is the address before the next entry,
  /// or the last address of all.
  void settle(std::uint64_t until) {
    while (position_ <= until && !live_.empty()) {
      const Live& top = live_.front();
      if (top.last < position_) {
        std::pop_heap(live_.begin(), live_.end(), order());
        live_.pop_back();
        continue;
      }
      const std::uint64_t last = std::min(top.last, until);
      out_.add(position_, last, top.rank.line);
      if (last == UINT64_MAX) return;
      position_ = last + 1;
    }
    position_ = std::max(position_, until + 1);  // wraps to 0 at the very end, where it is not read
                                                 // again
  }

  const Columns& sorted_;
  const OverlapPolicy& precedence_;
  std::vector<Live> live_;
  std::uint64_t reached_ = 0;  // the last address of all that were in live_
  std::uint64_t position_ = 0;
  Segments out_;
};

/// Whether sorted entries already have no overlaps.
bool is_partition(const Columns& sorted, std::span<const Map> maps) noexcept {
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    if (i != 0 && sorted.begin[i] <= reached) return false;
    reached = last_of(sorted.begin[i], sorted.size[i], sorted.line[i], maps);
  }
  return true;
}

/// Merges two tables of segments. `left_` and `right_` are the rests of the current segments.
class Merge {
 public:
  Merge(const SegmentTable& a, const SegmentTable& b, const OverlapPolicy& precedence)
      : left_(a, precedence.maps()), right_(b, precedence.maps()), precedence_(precedence) {
    reused_.add(a.reused());
    reused_.add(b.reused());
  }

  SegmentTable run() {
    out_.expect(2 * (left_.count() + right_.count()));
    while (!left_.done() || !right_.done()) step();
    reused_.settle();
    return out_.finish(std::move(reused_));
  }

 private:
  class Side {
   public:
    Side(const SegmentTable& run, std::span<const Map> maps) : run_(run), maps_(maps) { load(); }
    bool done() const noexcept { return position_ == run_.count(); }
    std::size_t count() const noexcept { return run_.count(); }
    /// Inclusive bounds: the segment at the last address has no 64-bit end.
    std::uint64_t first() const noexcept { return first_; }
    std::uint64_t last() const noexcept { return last_; }
    std::uint64_t line() const noexcept { return line_; }
    bool starts(std::uint64_t address) const noexcept { return !done() && first_ == address; }
    void drop_through(std::uint64_t last) {
      if (done() || first_ > last) return;
      if (last_ <= last) {
        ++position_;
        load();
      } else {
        first_ = last + 1;
      }
    }

   private:
    void load() {
      first_ = last_ = UINT64_MAX;
      if (done()) return;
      const Segment segment = run_.at(position_, maps_);
      first_ = segment.range.begin;
      last_ = first_ + (segment.range.size - 1);
      line_ = segment.owner.line;
    }

    const SegmentTable& run_;
    std::span<const Map> maps_;
    std::size_t position_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t line_ = 0;
  };

  void step() {
    const std::uint64_t first = std::min(left_.first(), right_.first());
    const bool in_left = left_.starts(first);
    const bool in_right = right_.starts(first);
    const bool take_right =
        !in_left || (in_right && precedence_.wins(precedence_.rank_of(right_.line()),
                                                  precedence_.rank_of(left_.line())));
    const Side& taken = take_right ? right_ : left_;
    const Side& other = take_right ? left_ : right_;
    std::uint64_t last = std::min(left_.last(), right_.last());
    if (!(in_left && in_right)) {
      last = taken.last();
      if (!other.done()) last = std::min(last, other.first() - 1);
    }
    if (in_left && in_right && are_rivals(left_.line(), right_.line(), precedence_.maps())) {
      reused_.add(first, last, EntryRef{taken.line()}.map());
    }
    out_.add(first, last, taken.line());
    left_.drop_through(last);
    right_.drop_through(last);
  }

  Side left_;
  Side right_;
  const OverlapPolicy& precedence_;
  ReusedAddresses reused_;
  Segments out_;
};

}  // namespace

SegmentTable make_run(Columns sorted, const OverlapPolicy& precedence) {
  if (!is_partition(sorted, precedence.maps())) return Sweep(sorted, precedence).run();
  sorted.shrink();
  return SegmentTable(std::move(sorted));
}

SegmentTable merge_runs(const SegmentTable& a, const SegmentTable& b,
                        const OverlapPolicy& precedence) {
  return Merge(a, b, precedence).run();
}

}  // namespace perfmap
