#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/pprof_names.hpp"
#include "stacks/pprof_profile.hpp"

namespace perfmap {

/// A location in the samples of a process.
struct PprofUse {
  std::uint64_t location = 0;  ///< position in PprofProfile::locations()
  pid_t pid = 0;
  bool was_leaf = false;
  std::uint64_t function = 0;  ///< id of the function that it has now; 0: as it was
  std::uint64_t id = 0;        ///< of the location that the process's samples have
};

/// Which locations get which names.
class PprofUses {
 public:
  PprofUses(const PprofProfile& profile, PprofNamed& report) : profile_(profile), report_(report) {}

  /// The locations of JIT code without a function, for each process whose samples have them.
  void find_uses();

  void find_names(const PprofNaming& naming);

  /// The first process's answer stays where it was; others that differ move.
  void settle();

  /// nullptr: no process has other code there than before.
  const PprofUse* own_use(std::size_t location) const {
    return own_[location] == 0 ? nullptr : &uses_[own_[location] - 1];
  }
  /// Uses that are to have a location of their own, which is to be added: by the location's
  /// position.
  std::vector<const PprofUse*> copies() const {
    std::vector<const PprofUse*> copies;
    for (const std::size_t use : first_of_copies_) copies.push_back(&uses_[use]);
    return copies;
  }
  bool has_copies() const noexcept { return copies_ != 0; }
  const PprofUse* use_of(std::uint64_t location_id, pid_t pid) const {
    const auto process = numbers_.find(pid);
    if (process == numbers_.end()) return nullptr;
    const auto use = process->second.find(profile_.find(location_id));
    return use == process->second.end() ? nullptr : &uses_[use->second];
  }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::optional<std::string_view> name_of(const JitSources& sources, const PprofUse& use) const;

  void count();

  const PprofProfile& profile_;
  PprofNamed& report_;
  std::vector<PprofUse> uses_;
  std::unordered_map<pid_t, std::unordered_map<std::uint64_t, std::size_t>> numbers_;  // of uses_
  std::vector<std::string> names_;  // of new functions, in the order of their ids
  std::vector<std::size_t> own_;    // by location: one more than the first use
  std::vector<std::size_t> first_of_copies_;
  std::uint64_t copies_ = 0;
};

}  // namespace perfmap
