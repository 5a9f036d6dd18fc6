#include "answers/lint/dump_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

/// A thread may wait that long between taking the time and writing its record. Where times are
/// ticks it is less, but no scheduler lets a thread wait so long.
constexpr std::uint64_t kTolerance = 1'000'000'000;

bool is_known(std::uint32_t id) noexcept {
  return !to_string(static_cast<JitRecordKind>(id)).empty();
}

}  // namespace

void OrderRules::see(const JitRecord& record) {
  if (!is_known(record.id)) {
    report(problems_, rule::kUnknownRecord, record.offset, [&] {
      std::string text = "a record of kind " + std::to_string(record.id);
      text += record.bytes.size() == JitRecord::kPrefix ? ": perf stops at a record of 16 bytes"
                                                        : ", which readers skip";
      return text;
    });
  }
  if (close_ && records_behind_close_++ == 0) behind_close_ = record.offset;
  if (!close_ && record.is(JitRecordKind::close)) close_ = record.offset;
  see_time(record);
}

void OrderRules::see_time(const JitRecord& record) {
  if (record.is(JitRecordKind::load)) {
    if (!first_load_) first_load_ = record;
    ++loads_;
    times_differ_ = times_differ_ || record.time != first_load_->time;
  }
  if (record.time == 0) return;
  if (last_time_ > record.time && last_time_ - record.time > kTolerance) {
    report(problems_, rule::kTimeGoesBack, record.offset + 8, [&] {
      return "time " + std::to_string(record.time) + " behind " + std::to_string(last_time_);
    });
  }
  last_time_ = record.time;
}

void OrderRules::finish() {
  if (records_behind_close_ != 0) {
    report(problems_, rule::kOddClose, behind_close_, [&] {
      return "records behind the CLOSE at " + place_text(*close_) + ": " +
             std::to_string(records_behind_close_);
    });
  }
  if (!first_load_ || times_differ_ || (loads_ == 1 && first_load_->time != 0)) return;
  report(problems_, rule::kNoTimes, first_load_->offset + 8, [&] {
    return "all functions have time " + std::to_string(first_load_->time) +
           ": nobody can tell which came when";
  });
}

}  // namespace perfmap::lint_rules
