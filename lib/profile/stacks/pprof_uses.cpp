#include "stacks/pprof_uses.hpp"

#include <map>
#include <memory>
#include <utility>

#include "stacks/shown_frames.hpp"
#include "unwind/return_site.hpp"

namespace perfmap {

void PprofUses::find_uses() {
  std::vector<bool> seen(profile_.locations().size());
  for (const PprofProfile::Sample& sample : profile_.samples()) {
    for (std::size_t at = sample.locations.begin; at < sample.locations.end; ++at) {
      const std::size_t location = profile_.find(profile_.location_id(at));
      if (location == profile_.locations().size()) continue;
      if (!seen[location]) ++report_.locations;
      if (!seen[location] && profile_.locations()[location].is_unnamed_jit) ++report_.jit;
      seen[location] = true;
      if (!profile_.locations()[location].is_unnamed_jit) continue;
      const auto [use, is_new] = numbers_[sample.pid].try_emplace(location, uses_.size());
      if (is_new) uses_.push_back({location, sample.pid, false, 0, 0});
      if (at == sample.locations.begin) uses_[use->second].was_leaf = true;
    }
  }
}

void PprofUses::find_names(const PprofNaming& naming) {
  std::map<pid_t, std::shared_ptr<JitSources>> sources;
  std::unordered_map<std::string, std::uint64_t> functions;
  for (PprofUse& use : uses_) {
    const auto [found, is_new] = sources.try_emplace(use.pid);
    if (is_new && naming.find) found->second = naming.find(use.pid);
    if (found->second == nullptr && use.pid == 0) ++report_.without_process;
    if (found->second == nullptr) continue;
    const auto name = name_of(*found->second, use);
    if (!name) continue;
    const auto [function, is_first] =
        functions.try_emplace(escaped(*name), profile_.last_function() + functions.size() + 1);
    if (is_first) names_.push_back(function->first);
    use.function = function->second;
  }
}

void PprofUses::settle() {
  own_.resize(profile_.locations().size());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> moved;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    PprofUse& use = uses_[i];
    const PprofProfile::Location& location = profile_.locations()[use.location];
    if (own_[use.location] == 0) own_[use.location] = i + 1;
    const PprofUse& own = uses_[own_[use.location] - 1];
    use.id = location.id;
    if (use.function == own.function) continue;
    const auto [other, is_new] =
        moved.try_emplace({use.location, use.function}, profile_.last_location() + copies_ + 1);
    if (is_new) ++copies_;
    if (is_new) first_of_copies_.push_back(i);
    use.id = other->second;
  }
  count();
}

std::optional<std::string_view> PprofUses::name_of(const JitSources& sources,
                                                   const PprofUse& use) const {
  const Address address = profile_.locations()[use.location].address;
  const auto exact = sources.find({address, Timeline::kEnd}).found;
  const bool may_be_before = !use.was_leaf && (!exact || exact->range.begin == address);
  if (may_be_before && return_site_in(sources, address).is_return) {
    const auto before = sources.find({address - 1, Timeline::kEnd}).found;
    if (before) return before->name;
  }
  return exact ? std::optional(exact->name) : std::nullopt;
}

void PprofUses::count() {
  report_.ambiguous = copies_;
  std::vector<bool> named(profile_.locations().size());
  for (const PprofUse& use : uses_) {
    if (use.function != 0 && !named[use.location]) ++report_.named;
    if (use.function != 0) named[use.location] = true;
  }
}

}  // namespace perfmap
