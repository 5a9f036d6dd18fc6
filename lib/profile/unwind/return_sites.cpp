// SPDX-License-Identifier: MIT
#include <unordered_map>

#include "perfmap/profile/unwinder.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap {

struct ReturnSites::State {
  static constexpr unsigned kBits = 12;
  static constexpr std::size_t kMaxModules = 1024;
  struct Known {
    const Module* module = nullptr;  ///< nullptr: free
    Address vaddr = 0;
    bool is_return = false;
  };

  void keep(const UnwindSpace::State& space, Address pc);

  std::vector<Known> known = std::vector<Known>(std::size_t{1} << kBits);
  std::unordered_map<const Module*, std::shared_ptr<const Module>> modules;  ///< of `known`
  RecentRegions regions;
};

/// Keeps the module of an entry alive, so that another one does not get its address.
void ReturnSites::State::keep(const UnwindSpace::State& space, Address pc) {
  std::shared_ptr<const Module> module = space.module_at(pc);
  if (modules.contains(module.get())) return;
  if (modules.size() >= kMaxModules) {
    known.assign(known.size(), Known());
    modules.clear();
  }
  modules.emplace(module.get(), std::move(module));
}

ReturnSites::ReturnSites() : state_(std::make_unique<State>()) {}
ReturnSites::ReturnSites(ReturnSites&&) noexcept = default;
ReturnSites& ReturnSites::operator=(ReturnSites&&) noexcept = default;
ReturnSites::~ReturnSites() = default;

bool ReturnSites::is_return(const UnwindSpace& space, Address pc, std::uint64_t time) {
  State& state = *state_;
  const CodeRegion* const region = state.regions.find(space.state(), pc);
  const bool is_within = region != nullptr && pc != region->begin;
  // Nothing is known of a runtime's code.
  if (is_within && region->module == nullptr && space.state().jit.empty() &&
      !space.state().read_code)
    return true;
  // If another region ends at the pc, its code counts, too.
  if (!is_within || region->module == nullptr) return space.return_site(pc, time).is_return;
  const Address vaddr = pc + region->delta;
  const auto which = reinterpret_cast<std::uintptr_t>(region->module) / alignof(std::max_align_t);
  const std::uint64_t hash = (vaddr + which * 0x85ebca77U) * 0x9e3779b97f4a7c15U;
  State::Known& known = state.known[static_cast<std::size_t>(hash >> (64 - State::kBits))];
  if (known.vaddr == vaddr && known.module == region->module) [[likely]]
    return known.is_return;
  const ReturnSite site = space.return_site(pc, time);
  if (site.is_final) {
    state.keep(space.state(), pc);
    known = {region->module, vaddr, site.is_return};
  }
  return site.is_return;
}

}  // namespace perfmap
