#pragma once

#include <memory>

#include "base/c_border.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/types.hpp"
#include "perfmap_profile.h"

namespace perfmap::capi {

inline perfmap_process to_c(const ProcessInfo& info) noexcept {
  perfmap_process out{};
  out.pid = info.pid;
  out.generation = info.generation;
  out.began = static_cast<std::int32_t>(info.began);
  out.parent = info.parent;
  out.since = info.since;
  out.until = info.until;
  out.start_ticks = info.start_ticks;
  out.comm = info.comm.data();
  out.comm_size = info.comm.size();
  return out;
}

}  // namespace perfmap::capi

struct perfmap_module_cache {
  perfmap::ModuleCache cache;
};

struct perfmap_tracker {
  perfmap::ProcessTracker tracker;
  perfmap::AddressName named = {};  ///< what the caller has views of
  std::vector<perfmap_source_frame> frames = {};
};
