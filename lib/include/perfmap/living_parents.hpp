#pragma once

#include <memory>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/process_tracker.hpp"

namespace perfmap {

/// The living processes that a process was forked from, the nearest first, as far as they still run
/// the program that it is a copy of; sixteen at most. A fork keeps the auxiliary vector, and an
/// exec has the kernel draw its addresses anew.
PERFMAP_API std::vector<ProcSource> living_parents(const ProcSource& process, const Roots& roots);

/// Sources of a process that `pid` was forked from, for memory that it has from there: those of the
/// nearest one first. ProcessTracker::refresh_jit() finds them by itself, where they are.
PERFMAP_API void attach_parent_jit(ProcessTracker& tracker, pid_t pid, pid_t parent,
                                   std::shared_ptr<JitSources> sources);

}  // namespace perfmap
