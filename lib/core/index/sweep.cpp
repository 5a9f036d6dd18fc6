#include <algorithm>
#include <optional>
#include <vector>

#include "index/run.hpp"

namespace perfmap {
namespace {

/// Collects segments in address order; two that touch and have the same owner become one.
class Segments {
 public:
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t line) {
    if (begin != 0 && end_ == begin && !columns_.line.empty() && columns_.line.back() == line) {
      columns_.size.back() = short_size(end - columns_.begin.back());
    } else {
      columns_.make_room(1);
      columns_.append(begin, end - begin, line);
    }
    end_ = end;
  }
  Run finish() {
    columns_.shrink();
    return Run(std::move(columns_));
  }

 private:
  Columns columns_;
  std::uint64_t end_ = 0;
};

/// Goes over the entries in address order. `live_` is a heap of those that have begun, the one that
/// takes precedence on top; those that have ended leave it when they come to the top.
class Sweep {
  struct Live {
    std::uint64_t end;
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
      const std::uint64_t end = end_of(begin, sorted_.size[i], line, precedence_.maps());
      settle(begin);
      if (begin == UINT64_MAX) offer_top({1, line});
      if (end <= begin) continue;
      live_.push_back({end, {end - begin, line}});
      std::push_heap(live_.begin(), live_.end(), order());
    }
    settle(UINT64_MAX);
    if (top_) out_.add(UINT64_MAX, 0, top_->line);
    return out_.finish();
  }

 private:
  /// The last address of all: only entries that begin there cover it, and its end has no number.
  void offer_top(const Precedence::Rank& rank) {
    if (!top_ || precedence_.wins(rank, *top_)) top_ = rank;
  }

  /// Says who owns everything from position_ up to `until`, where the next entry begins.
  void settle(std::uint64_t until) {
    while (position_ < until && !live_.empty()) {
      const Live& top = live_.front();
      if (top.end <= position_) {
        std::pop_heap(live_.begin(), live_.end(), order());
        live_.pop_back();
      } else {
        const std::uint64_t end = std::min(top.end, until);
        out_.add(position_, end, top.rank.line);
        position_ = end;
      }
    }
    position_ = until;
  }

  const Columns& sorted_;
  const Precedence& precedence_;
  std::vector<Live> live_;
  std::optional<Precedence::Rank> top_;
  std::uint64_t position_ = 0;
  Segments out_;
};

/// Whether sorted entries are a partition as they are.
bool is_partition(const Columns& sorted, std::span<const Map> maps) noexcept {
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    if (sorted.begin[i] < reached) return false;
    reached = end_of(sorted.begin[i], sorted.size[i], sorted.line[i], maps);
    if (reached <= sorted.begin[i]) return false;  // nothing at 2^64 - 1 can be covered
  }
  return true;
}

/// Goes over two partitions at once. `left_` and `right_` are what is left of the segments at hand.
class Merge {
 public:
  Merge(const Run& a, const Run& b, const Precedence& precedence)
      : left_(a, precedence.maps()), right_(b, precedence.maps()), precedence_(precedence) {}

  Run run() {
    while (!left_.done() || !right_.done()) step();
    return out_.finish();
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
    out_.add(first, last + 1, taken.line());
    left_.drop_through(last);
    right_.drop_through(last);
  }

  Side left_;
  Side right_;
  const Precedence& precedence_;
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
