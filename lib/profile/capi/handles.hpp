// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "base/c_border.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/types.hpp"
#include "perfmap_profile.h"

/// Handles and conversions that several files of this folder use.
namespace perfmap::capi {

/// Stacks by StackEnd, and frames by FrameSource.
using EndCounts = decltype(StackCounts::ends);
using SourceCounts = decltype(StackCounts::sources);

inline perfmap_process to_c(const ProcessInfo& info) noexcept {
  perfmap_process out{};
  out.pid = info.pid;
  out.generation = info.generation;
  out.began = static_cast<std::int32_t>(info.began);
  out.parent = info.parent;
  out.since = info.since;
  out.until = info.until;
  out.start_ticks = info.start_ticks;
  lend(info.comm, out.comm, out.comm_size);
  return out;
}

perfmap_region to_c(const Region& region) noexcept;

/// The caller's way to open files, before `others`, which may be empty.
ProcessTracker::OpenModule open_with(perfmap_open_module open, void* context,
                                     ProcessTracker::OpenModule others);
/// Opens files through the cache: below `symfs`, or, if that is null, on this machine.
ProcessTracker::OpenModule open_from(ModuleCache& cache, const char* symfs);

}  // namespace perfmap::capi

struct perfmap_module_cache {
  perfmap::ModuleCache cache;
};

struct perfmap_module {
  std::shared_ptr<const perfmap::Module> module;
};

struct perfmap_tracker {
  perfmap::ProcessTracker tracker;
  perfmap::AddressName named = {};  ///< what the caller has views of
  std::vector<perfmap_source_frame> frames = {};
};
