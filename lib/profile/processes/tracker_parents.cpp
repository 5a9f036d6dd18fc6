#include "perfmap/jit_sources.hpp"
#include "perfmap/proc_source.hpp"
#include "processes/tracker_state.hpp"

namespace perfmap {
namespace {

/// A living process of which `child` is a copy: a fork keeps the auxiliary vector, and an exec has
/// the kernel draw its addresses anew.
std::optional<ProcSource> open_original(pid_t pid, const Generation& child, const Roots& roots) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, roots);
  if (!process || !*process) return std::nullopt;
  const ProcSource::Seen<std::uint64_t> image = (*process)->image_id();
  if (!image || !*image || **image != child.image) return std::nullopt;
  return *std::move(process);
}

}  // namespace

/// Finds the sources of those that a living process was forked from, and takes in what they have
/// got since.
void ProcessTracker::State::refresh_parents(Generation& child) const {
  if (child.info().began != ProcessBegin::imported || child.image == 0) return;
  constexpr std::size_t kMostParents = 16;
  pid_t parent = child.info().parent;
  for (std::size_t i = 0; i < kMostParents && parent > 1; ++i) {
    const std::optional<ProcSource> process = open_original(parent, child, options.roots);
    if (!process) return;
    const bool is_known = i < child.originals.size() && child.originals[i].pid == parent;
    if (is_known) {
      static_cast<void>(child.originals[i].jit->refresh(&*process));  // what there was, stays
    } else if (auto found = JitSources::find(
                   *process, {options.roots, options.any_owner, options.overlap, nullptr});
               found && *found) {
      child.originals.resize(i);
      child.originals.push_back({parent, std::make_shared<JitSources>(**std::move(found))});
    } else {
      return;
    }
    const ProcSource::Seen<ProcessStatus> status = process->status();
    if (!status || !*status) return;
    parent = (*status)->parent;
  }
}

}  // namespace perfmap
