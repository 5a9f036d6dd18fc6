#include "processes/generation.hpp"

#include <algorithm>

namespace perfmap {
namespace {

/// Below, replaying costs no more than the look-up of what to replay.
constexpr std::size_t kFewChanges = 64;

}  // namespace

Generation::Generation(ProcessInfo info, std::shared_ptr<const AddressSpace> begins_with,
                       std::shared_ptr<JitLineage> line)
    : info_(std::move(info)),
      line_(std::move(line)),
      kept_{{info_.since, 0, std::move(begins_with)}},
      last_(kept_.front()),
      last_time_(info_.since),
      threads_{info_.pid} {}

/// Whatever is mapped now is mapped into empty memory.
void Generation::end_passing(std::uint64_t time) {
  if (passing_ == nullptr || is_mapped_) return;
  is_mapped_ = true;
  passed_at_ = time;
  vdso.reset();
  code_.reset();
  kept_.push_back({time, changes_.size(), std::make_shared<AddressSpace>()});
}

void Generation::change(std::uint64_t time, Region region) {
  last_time_ = std::max(last_time_, time);
  if (region.file != nullptr) end_passing(last_time_);
  region.mapped_by = line_->id;
  const bool is_code = region.file != nullptr && region.access.execute;
  if (!code_ && is_code) return add_change(std::move(region));
  if (!code_) code_.emplace(*at(ProcessTracker::kNow));
  std::vector<Region> left;
  code_->take(region, left);
  for (Region& part : left) add_change(std::move(part));
}

void Generation::add_change(Region region) {
  changes_.push_back({last_time_, std::move(region)});
  const Kept& kept = kept_.back();
  if (changes_.size() - kept.changes < kept.space->regions().size() + kFewChanges) return;
  kept_.push_back(made_of(kept, changes_.size()));
}

void Generation::replace(std::uint64_t time, std::shared_ptr<const AddressSpace> space) {
  last_time_ = std::max(last_time_, time);
  end_passing(last_time_);
  kept_.push_back({last_time_, changes_.size(), std::move(space)});
  code_.reset();
}

const Generation::Kept& Generation::nearest(std::uint64_t time,
                                            std::size_t changes) const noexcept {
  const auto behind =
      std::upper_bound(kept_.begin() + 1, kept_.end(), time,
                       [](std::uint64_t asked, const Kept& kept) { return asked < kept.time; });
  const Kept& kept = *(behind - 1);
  const bool last_fits = last_.time <= time && last_.changes <= changes;
  const bool last_is_nearer = last_.time >= kept.time && last_.changes > kept.changes;
  return last_fits && last_is_nearer ? last_ : kept;
}

Generation::Kept Generation::made_of(const Kept& kept, std::size_t changes) const {
  std::vector<Region> regions;
  regions.reserve(changes - kept.changes);
  for (std::size_t i = kept.changes; i < changes; ++i) regions.push_back(changes_[i].region);
  return {changes_[changes - 1].time, changes, AddressSpace::changed(kept.space, regions)};
}

std::shared_ptr<const AddressSpace> Generation::at(std::uint64_t time) {
  const auto behind = std::upper_bound(
      changes_.begin(), changes_.end(), time,
      [](std::uint64_t asked, const Change& change) { return asked < change.time; });
  const auto changes = static_cast<std::size_t>(behind - changes_.begin());
  const Kept& kept = nearest(time, changes);
  if (kept.changes >= changes) return kept.space;
  last_ = made_of(kept, changes);
  return last_.space;
}

void Generation::forget_before(std::uint64_t time) {
  if (time <= kept_.front().time) return;
  const std::shared_ptr<const AddressSpace> space = at(time);
  const auto changed_later = std::upper_bound(
      changes_.begin(), changes_.end(), time,
      [](std::uint64_t asked, const Change& change) { return asked < change.time; });
  const auto forgotten = static_cast<std::size_t>(changed_later - changes_.begin());
  changes_.erase(changes_.begin(), changed_later);
  std::erase_if(kept_, [time](const Kept& kept) { return kept.time <= time; });
  for (Kept& kept : kept_) kept.changes -= forgotten;
  kept_.insert(kept_.begin(), {std::min(time, last_time_), 0, space});
  if (is_mapped_ && passed_at_ <= time) passing_.reset();
  last_ = kept_.front();
}

void Generation::forget_memory() {
  changes_ = {};
  kept_ = {{info_.since, 0, std::make_shared<AddressSpace>()}};
  last_ = kept_.front();
  code_.reset();
  passing_.reset();
  // Children go on asking the old one.
  line_ = std::make_shared<JitLineage>();
}

}  // namespace perfmap
