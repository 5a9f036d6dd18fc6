#include <algorithm>

#include "perfmap/jit_sources.hpp"
#include "perfmap/proc_source.hpp"
#include "processes/tracker_state.hpp"

namespace perfmap {
namespace {

/// The process if it is the one that the tracker knows, and runs the program that it knows.
std::optional<ProcSource> open_known(const Generation& known, const Roots& roots) {
  if (known.info().until != ProcessTracker::kNow) return std::nullopt;
  ProcSource::Seen<ProcSource> process = ProcSource::open(known.info().pid, roots);
  if (!process || !*process) return std::nullopt;
  const std::uint64_t start = known.info().start_ticks;
  if (start != 0 && start != (*process)->start()) return std::nullopt;
  const ProcSource::Seen<std::uint64_t> image = (*process)->image_id();
  if (!image || !*image || (known.image != 0 && known.image != **image)) return std::nullopt;
  return *std::move(process);
}

}  // namespace

void ProcessTracker::State::forget_dead_modules() {
  std::erase_if(modules, [](const auto& one) { return one.second.file.expired(); });
  modules_cleaned_at = std::max<std::size_t>(64, modules.size() * 2);
}

Result<std::shared_ptr<const Module>> ProcessTracker::module_of(pid_t pid, const Region& region) {
  State& state = *state_;
  if (!state.options.open_module || region.file == nullptr) {
    return Failure({Errc::unsupported, "nothing opens modules here", 0, {}});
  }
  Generation* const known = state.living(pid);
  const auto open = [&] {
    const std::optional<ProcSource> process =
        known != nullptr ? open_known(*known, state.options.roots) : std::nullopt;
    return state.options.open_module(region, process ? &*process : nullptr);
  };
  if (known != nullptr && region.file->kind == RegionKind::vdso) {
    if (!known->vdso) known->vdso = open();
    return *known->vdso;
  }
  const std::uint32_t generation = known != nullptr ? known->info().generation : 0;
  const auto opened = state.modules.find(region.file.get());
  if (opened != state.modules.end() && opened->second.file.lock() == region.file) {
    const State::OpenedModule& one = opened->second;
    const bool asked_before = one.asked_by == pid && one.asked_by_generation == generation;
    if (one.module || asked_before) return one.module;
  }
  auto module = open();
  if (state.modules.size() >= state.modules_cleaned_at) state.forget_dead_modules();
  state.modules.insert_or_assign(region.file.get(),
                                 State::OpenedModule{region.file, module, pid, generation});
  return module;
}

Result<std::shared_ptr<JitSources>> ProcessTracker::refresh_jit(pid_t pid) {
  State& state = *state_;
  Generation* const known = state.living(pid);
  if (known == nullptr) return nullptr;
  const std::optional<ProcSource> process = open_known(*known, state.options.roots);
  if (process) state.refresh_parents(*known, *process);
  std::shared_ptr<JitSources>& jit = known->jit();
  if (jit != nullptr) {
    const Result<Growth> growth = jit->refresh(process ? &*process : nullptr);
    if (!growth) return Failure(growth.error());
    return jit;
  }
  if (!process) return nullptr;
  const Options& options = state.options;
  auto found = JitSources::find(
      *process, {options.roots, options.any_owner, options.overlap, state.former_jit(pid)});
  if (!found) return Failure(found.error());
  const bool has_any = *found && (!(*found)->empty() || !(*found)->refused().empty());
  if (has_any) jit = std::make_shared<JitSources>(**std::move(found));
  return jit;
}

/// What the last program that had the pid, and had any, had.
std::shared_ptr<JitSources> ProcessTracker::State::former_jit(pid_t pid) const {
  const auto found = processes.find(pid);
  if (found == processes.end() || found->second.empty()) return nullptr;
  for (std::size_t i = found->second.size() - 1; i-- > 0;) {
    if (found->second[i]->jit() != nullptr) return found->second[i]->jit();
  }
  return nullptr;
}

void ProcessTracker::attach_jit(pid_t pid, std::shared_ptr<JitSources> sources) {
  state_->begun(pid, 0).jit() = std::move(sources);
}

std::shared_ptr<JitSources> ProcessTracker::jit(pid_t pid, std::uint64_t time) const noexcept {
  Generation* const one = state_->find(pid, time);
  return one != nullptr ? one->jit() : nullptr;
}

std::shared_ptr<JitLineage> ProcessTracker::lineage(pid_t pid, std::uint64_t time) const noexcept {
  const Generation* const one = state_->find(pid, time);
  return one != nullptr ? one->line(time) : nullptr;
}

const ProcessInfo* ProcessTracker::info_of(const JitLineage& lineage) const noexcept {
  const auto found = state_->processes.find(lineage.pid);
  if (found == state_->processes.end()) return nullptr;
  const auto& all = found->second;
  const auto one = std::lower_bound(all.begin(), all.end(), lineage.generation,
                                    [](const auto& generation, std::uint32_t wanted) {
                                      return generation->info().generation < wanted;
                                    });
  const bool is_it = one != all.end() && (*one)->info().generation == lineage.generation;
  return is_it ? &(*one)->info() : nullptr;
}

std::optional<JitCode> ProcessTracker::find_jit_code(pid_t pid, Address address, std::uint64_t time,
                                                     std::uint64_t source_time) {
  Generation* const one = state_->find(pid, time);
  if (one == nullptr) return std::nullopt;
  const std::shared_ptr<const AddressSpace> space = one->at(time);
  const Region* const region = space->find(address);
  if (region == nullptr || jit_room(*region) == JitRoom::none) return std::nullopt;
  const LineageAnswer answer = one->line(time)->find(region, {address, source_time});
  if (!answer.found) return std::nullopt;
  return JitCode{answer.found->name, answer.found->range, jit_room(*region), answer.sources,
                 answer.doubts};
}

}  // namespace perfmap
