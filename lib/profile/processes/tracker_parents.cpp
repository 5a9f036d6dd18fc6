#include "perfmap/jit_sources.hpp"
#include "perfmap/living_parents.hpp"
#include "perfmap/proc_source.hpp"
#include "processes/tracker_state.hpp"

namespace perfmap {
namespace {

/// A living process with that image.
std::optional<ProcSource> open_original(pid_t pid, std::uint64_t image, const Roots& roots) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, roots);
  if (!process || !*process) return std::nullopt;
  const ProcSource::Seen<std::uint64_t> own = (*process)->image_id();
  if (!own || !*own || **own != image) return std::nullopt;
  return *std::move(process);
}

/// 0: not known.
pid_t parent_of(const ProcSource& process) {
  const ProcSource::Seen<ProcessStatus> status = process.status();
  return status && *status ? (*status)->parent : 0;
}

}  // namespace

std::vector<ProcSource> living_parents(const ProcSource& process, const Roots& roots) {
  constexpr std::size_t kMostParents = 16;
  std::vector<ProcSource> parents;
  const ProcSource::Seen<std::uint64_t> image = process.image_id();
  if (!image || !*image) return parents;
  pid_t pid = parent_of(process);
  while (pid > 0 && parents.size() < kMostParents) {
    std::optional<ProcSource> parent = open_original(pid, **image, roots);
    if (!parent) break;
    pid = parent_of(*parent);
    parents.push_back(*std::move(parent));
  }
  return parents;
}

void attach_parent_jit(ProcessTracker& tracker, pid_t pid, pid_t parent,
                       std::shared_ptr<JitSources> sources) {
  const std::shared_ptr<JitLineage> lineage = tracker.lineage(pid);
  if (lineage == nullptr) return;
  JitLineage* last = lineage.get();
  while (last->parent != nullptr) last = last->parent.get();
  last->parent = std::make_shared<JitLineage>();
  last->parent->pid = parent;
  last->parent->jit = std::move(sources);
}

/// Finds the sources of those that a living process was forked from, and takes in what they have
/// got since.
void ProcessTracker::State::refresh_parents(Generation& child, const ProcSource& process) const {
  if (child.info().began != ProcessBegin::imported || child.image == 0) return;
  JitLineage* line = child.line().get();
  for (const ProcSource& one : living_parents(process, options.roots)) {
    std::shared_ptr<JitLineage>& parent = line->parent;
    if (parent != nullptr && parent->pid == one.pid()) {
      static_cast<void>(parent->jit->refresh(&one));  // what there was, stays
    } else {
      auto found =
          JitSources::find(one, {options.roots, options.any_owner, options.overlap, nullptr});
      if (!found || !*found) return;
      parent = std::make_shared<JitLineage>();
      parent->pid = one.pid();
      parent->jit = std::make_shared<JitSources>(**std::move(found));
    }
    line = parent.get();
  }
}

}  // namespace perfmap
