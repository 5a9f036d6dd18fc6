#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/types.hpp"
#include "perfmap_profile.h"

namespace perfmap::profile_capi {

/// Copies `value` to the caller, no further than the struct that the caller knows.
template <class T>
void copy_out(T value, T* out) noexcept {
  value.struct_size = std::min(out->struct_size, sizeof value);
  std::memcpy(out, &value, value.struct_size);
}

/// The caller's struct, with zeros for the members that the caller does not know.
template <class T>
T copy_in(const T* in) noexcept {
  T value{};
  if (in != nullptr) std::memcpy(&value, in, std::min(in->struct_size, sizeof value));
  return value;
}

inline perfmap_status report(const Error& error, perfmap_error* out) noexcept {
  if (out != nullptr) {
    perfmap_error filled{0, error.sys_errno, error.where.offset, {}};
    error.message.copy(filled.message, sizeof filled.message - 1);
    copy_out(filled, out);
  }
  return static_cast<perfmap_status>(error.code);
}

/// Runs `body` and lets no exception out: the one place in the library that catches.
template <class Body>
perfmap_status guard(perfmap_error* out, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(Error{Errc::no_memory, "out of memory", 0, {}}, out);
  } catch (const std::exception& bug) {
    return report(Error{Errc::internal, bug.what(), 0, {}}, out);
  } catch (...) {  // out of a caller's function
    return report(Error{Errc::internal, "unknown exception", 0, {}}, out);
  }
}

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

}  // namespace perfmap::profile_capi

struct perfmap_module_cache {
  perfmap::ModuleCache cache;
};

struct perfmap_tracker {
  perfmap::ProcessTracker tracker;
  perfmap::AddressName named = {};  ///< what the caller has views of
  std::vector<perfmap_source_frame> frames = {};
};
