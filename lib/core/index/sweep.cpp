#include <algorithm>
#include <vector>

#include "index/run.hpp"

namespace perfmap {
namespace {

/// Collects segments in address order; two that touch and have the same owner become one.
class Segments {
 public:
  /// Up to `last`, the last address of all included, whose end has no number.
  void add(std::uint64_t begin, std::uint64_t last, std::uint64_t line) {
    if (begin != 0 && last_ == begin - 1 && !columns_.line.empty() &&
        columns_.line.back() == line) {
      columns_.size.back() = short_size(last - columns_.begin.back() + 1);
    } else {
      columns_.make_room(1);
      columns_.append(begin, last - begin + 1, line);
    }
    last_ = last;
  }
  Run finish(ReusedAddresses reused) {
    columns_.shrink();
    return Run(std::move(columns_), std::move(reused));
  }

 private:
  Columns columns_;
  std::uint64_t last_ = 0;
};

/// Goes over the entries in address order. `live_` is a heap of those that have begun, the one that
/// takes precedence on top; those that have ended leave it when they come to the top.
class Sweep {
  struct Live {
    std::uint64_t last;
    Precedence::Rank rank;
  };
  auto order() const {
    return [this](const Live& a, const Live& b) { return precedence_.wins(b.rank, a.rank); };
  }

 public:
  Sweep(const Columns& sorted, const Precedence& precedence)
      : sorted_(sorted), precedence_(precedence) {}

  Run run() {
    for (std::size_t i = 0; i < sorted_.count(); ++i) {
      const std::uint64_t begin = sorted_.begin[i];
      const std::uint64_t line = sorted_.line[i];
      const std::uint64_t last = last_of(begin, sorted_.size[i], line, precedence_.maps());
      if (begin != 0) settle(begin - 1);
      live_.push_back({last, {last - begin + 1, line}});
      std::push_heap(live_.begin(), live_.end(), order());
    }
    settle(UINT64_MAX);
    return out_.finish(find_reused(sorted_, precedence_.maps()));
  }

 private:
  /// Says who owns everything from position_ up to `until`, the address before the next entry, or
  /// the last one of all.
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
    position_ = std::max(position_, until + 1);  // 0 at the very end, where no one looks any more
  }

  const Columns& sorted_;
  const Precedence& precedence_;
  std::vector<Live> live_;
  std::uint64_t position_ = 0;
  Segments out_;
};

/// Whether sorted entries are a partition as they are.
bool is_partition(const Columns& sorted, std::span<const Map> maps) noexcept {
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    if (i != 0 && sorted.begin[i] <= reached) return false;
    reached = last_of(sorted.begin[i], sorted.size[i], sorted.line[i], maps);
  }
  return true;
}

/// Goes over two partitions at once. `left_` and `right_` are what is left of the segments at hand.
class Merge {
 public:
  Merge(const Run& a, const Run& b, const Precedence& precedence)
      : left_(a, precedence.maps()), right_(b, precedence.maps()), precedence_(precedence) {
    reused_.add(a.reused());
    reused_.add(b.reused());
  }

  Run run() {
    while (!left_.done() || !right_.done()) step();
    reused_.settle();
    return out_.finish(std::move(reused_));
  }

 private:
  class Side {
   public:
    Side(const Run& run, std::span<const Map> maps) : run_(run), maps_(maps) { load(); }
    bool done() const noexcept { return position_ == run_.count(); }
    /// Inclusive, as the segment at the last address of all has no other end.
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

    const Run& run_;
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
      reused_.add(first, last, Hit{taken.line()}.map());
    }
    out_.add(first, last, taken.line());
    left_.drop_through(last);
    right_.drop_through(last);
  }

  Side left_;
  Side right_;
  const Precedence& precedence_;
  ReusedAddresses reused_;
  Segments out_;
};

}  // namespace

Run make_run(Columns sorted, const Precedence& precedence) {
  if (!is_partition(sorted, precedence.maps())) return Sweep(sorted, precedence).run();
  sorted.shrink();
  return Run(std::move(sorted));
}

Run merge_runs(const Run& a, const Run& b, const Precedence& precedence) {
  return Merge(a, b, precedence).run();
}

}  // namespace perfmap
