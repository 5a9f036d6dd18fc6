// SPDX-License-Identifier: MIT
#include "capi/handles.hpp"
#include "perfmap/profile/process_tracker.hpp"

using namespace perfmap::capi;

namespace {

std::string_view text_of(const void* bytes, size_t size) noexcept {
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

perfmap::Access to_cpp(uint32_t access) noexcept {
  return {(access & PERFMAP_ACCESS_READ) != 0, (access & PERFMAP_ACCESS_WRITE) != 0,
          (access & PERFMAP_ACCESS_EXECUTE) != 0, (access & PERFMAP_ACCESS_SHARED) != 0};
}

}  // namespace

perfmap_status perfmap_tracker_on_mmap(perfmap_tracker* tracker, const perfmap_mmap_event* event,
                                       perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_mmap_event in = copy_in(event);
        perfmap::MmapEvent out;
        out.pid = in.pid;
        out.time = in.time;
        out.range = perfmap::AddressRange::clamped(in.begin, in.size);
        out.offset = in.offset;
        out.name = text_of(in.name, in.name_size);
        out.access = to_cpp(in.access);
        out.device_major = in.device_major;
        out.device_minor = in.device_minor;
        out.inode = in.inode;
        out.inode_generation = in.inode_generation;
        out.build_id = text_of(in.build_id, in.build_id_size);
        tracker->tracker.on_mmap(out);
        return PERFMAP_OK;
      },
      event);
}

perfmap_status perfmap_tracker_on_unmap(perfmap_tracker* tracker, int32_t pid, uint64_t time,
                                        uint64_t begin, uint64_t size, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    tracker->tracker.on_unmap({pid, time, perfmap::AddressRange::clamped(begin, size)});
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_on_fork(perfmap_tracker* tracker, int32_t pid, int32_t tid,
                                       int32_t parent, uint64_t time, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    tracker->tracker.on_fork({pid, tid, parent, time});
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_on_comm(perfmap_tracker* tracker, int32_t pid, int32_t tid,
                                       uint64_t time, const char* comm, size_t comm_size,
                                       int32_t exec, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    tracker->tracker.on_comm({pid, tid, time, text_of(comm, comm_size), exec != 0});
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_on_exit(perfmap_tracker* tracker, int32_t pid, int32_t tid,
                                       uint64_t time, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    tracker->tracker.on_exit({pid, tid, time});
    return PERFMAP_OK;
  });
}

struct perfmap_space {
  std::shared_ptr<const perfmap::AddressSpace> space;
  perfmap::ProcessInfo process;
};

namespace {

uint32_t bits_of(const perfmap::Access& access) noexcept {
  return (access.read ? PERFMAP_ACCESS_READ : 0u) | (access.write ? PERFMAP_ACCESS_WRITE : 0u) |
         (access.execute ? PERFMAP_ACCESS_EXECUTE : 0u) |
         (access.shared ? PERFMAP_ACCESS_SHARED : 0u);
}

}  // namespace

perfmap_region perfmap::capi::to_c(const perfmap::Region& region) noexcept {
  const perfmap::MappedFile& file = *region.file;
  perfmap_region out{};
  out.begin = region.range.begin;
  out.size = region.range.size;
  out.offset = region.offset;
  out.access = bits_of(region.access);
  out.kind = static_cast<int32_t>(file.kind);
  out.jit = static_cast<int32_t>(perfmap::jit_region_kind(region));
  out.device_major = file.device_major;
  out.device_minor = file.device_minor;
  out.inode = file.inode;
  lend(file.name, out.name, out.name_size);
  lend(file.build_id, out.build_id, out.build_id_size);
  return out;
}

perfmap_status perfmap_space_begin_with_tracker(perfmap_tracker* tracker, int32_t pid,
                                                uint64_t time, perfmap_space** out,
                                                perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap::ProcessInfo* const process = tracker->tracker.find(pid, time);
    if (process == nullptr) return PERFMAP_E_NOT_FOUND;
    *out = new perfmap_space{tracker->tracker.at(pid, time), *process};
    return PERFMAP_OK;
  });
}

void perfmap_space_end(perfmap_space* space) { delete space; }

void perfmap_space_process(const perfmap_space* space, perfmap_process* out) {
  if (!perfmap::capi::is_complete(out)) return;
  copy_out(to_c(space->process), out);
}

perfmap_status perfmap_space_find(const perfmap_space* space, uint64_t address,
                                  perfmap_region* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const perfmap::Region* const region = space->space->find(address);
  if (region == nullptr) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*region), out);
  return PERFMAP_OK;
}

size_t perfmap_space_size(const perfmap_space* space) { return space->space->regions().size(); }

void perfmap_space_region(const perfmap_space* space, size_t index, perfmap_region* out) {
  if (!perfmap::capi::is_complete(out)) return;
  copy_out(to_c(space->space->regions()[index]), out);
}

perfmap_status perfmap_tracker_begin(const perfmap_tracker_options* options, perfmap_tracker** out,
                                     perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_tracker_options asked = copy_in(options);
        perfmap::ProcessTracker::Options taken;
        if (asked.proc != nullptr) taken.roots.proc = asked.proc;
        if (asked.tmp != nullptr) taken.roots.tmp = asked.tmp;
        taken.any_owner = asked.any_owner != 0;
        if (asked.modules != nullptr)
          taken.open_module = perfmap::capi::open_from(asked.modules->cache, asked.symfs);
        if (asked.open != nullptr) {
          taken.open_module = perfmap::capi::open_with(asked.open, asked.open_context,
                                                       std::move(taken.open_module));
        }
        *out = new perfmap_tracker{perfmap::ProcessTracker(std::move(taken))};
        return PERFMAP_OK;
      },
      options);
}

void perfmap_tracker_end(perfmap_tracker* tracker) { delete tracker; }

perfmap_status perfmap_tracker_find_pid(perfmap_tracker* tracker, int32_t pid,
                                        perfmap_create_process create, void* context,
                                        perfmap_process* out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        perfmap_status refused = PERFMAP_OK;
        perfmap::ProcessTracker::Create call;
        if (create != nullptr) {
          call = [&](perfmap::ProcessTracker&, pid_t asked) -> perfmap::Result<void> {
            refused = create(tracker, asked, context);
            if (refused == PERFMAP_OK) return {};
            return perfmap::Failure(perfmap::Error::told(static_cast<perfmap::Errc>(refused),
                                                         "the process could not be created"));
          };
        }
        const auto found = tracker->tracker.find_pid(pid, call);
        if (!found) return report(found.error(), error);
        if (*found == nullptr) return PERFMAP_E_NOT_FOUND;
        copy_out(to_c(**found), out);
        return PERFMAP_OK;
      },
      out);
}

perfmap_status perfmap_tracker_import(perfmap_tracker* tracker, int32_t pid, uint64_t time,
                                      int32_t* imported, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto done =
        time == PERFMAP_NOW ? tracker->tracker.import(pid) : tracker->tracker.import(pid, time);
    if (!done) return report(done.error(), error);
    if (imported != nullptr) *imported = static_cast<int32_t>(*done);
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_refresh_jit(perfmap_tracker* tracker, int32_t pid,
                                           perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto sources = tracker->tracker.refresh_jit(pid);
    if (!sources) return report(sources.error(), error);
    return *sources != nullptr ? PERFMAP_OK : PERFMAP_E_NOT_FOUND;
  });
}

perfmap_status perfmap_tracker_find_jit(perfmap_tracker* tracker, int32_t pid, uint64_t address,
                                        uint64_t time, uint64_t source_time, perfmap_jit_code* out,
                                        perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const auto code = tracker->tracker.find_jit_code(pid, address, time, source_time);
        if (!code) return PERFMAP_E_NOT_FOUND;
        copy_out(perfmap_jit_code{0, code->range.begin, code->range.size, code->name.data(),
                                  code->name.size(), static_cast<int32_t>(code->room),
                                  code->doubts.bits},
                 out);
        return PERFMAP_OK;
      },
      out);
}

perfmap_status perfmap_tracker_forget_before(perfmap_tracker* tracker, uint64_t time,
                                             perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    tracker->tracker.forget_before(time);
    return PERFMAP_OK;
  });
}
