#include <algorithm>

#include "perfmap/process_tracker.hpp"
#include "perfmap/unwinder.hpp"
#include "processes/jit_lineage.hpp"

namespace perfmap {
namespace {

/// Its own, and those of the processes that it was forked from, whose code it may still have.
std::vector<std::shared_ptr<const JitSources>> sources_of(const ProcessTracker& tracker, pid_t pid,
                                                          std::uint64_t time) {
  std::vector<std::shared_ptr<const JitSources>> sources;
  const std::shared_ptr<JitLineage> lineage = tracker.lineage(pid, time);
  const JitLineage* one = lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMostGenerations; ++i) {
    if (one->asks_own && one->jit != nullptr) sources.push_back(one->jit);
    one = one->parent.get();
  }
  return sources;
}

void note(Error error, std::vector<Error>& failures) {
  // Most memory is no ELF file, and nobody wonders.
  if (error.code == Errc::bad_format || error.code == Errc::unsupported) return;
  const auto is_known = [&](const Error& known) { return known.message == error.message; };
  if (std::none_of(failures.begin(), failures.end(), is_known))
    failures.push_back(std::move(error));
}

}  // namespace

std::shared_ptr<const UnwindSpace> UnwindSpace::attach(ProcessTracker& tracker, pid_t pid,
                                                       std::uint64_t time, Options options,
                                                       std::vector<Error>* failures) {
  const auto space = tracker.at(pid, time);
  if (space == nullptr) return nullptr;
  if (options.jit.empty()) options.jit = sources_of(tracker, pid, time);
  if (!options.open_module) {
    options.open_module = [&](const Region& region) -> std::shared_ptr<const Module> {
      auto module = tracker.module_of(pid, region);
      if (module) return *std::move(module);
      if (failures != nullptr) note(std::move(module.error()), *failures);
      return nullptr;
    };
  }
  return make(*space, options);
}

}  // namespace perfmap
