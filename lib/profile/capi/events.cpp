#include "capi/border.hpp"

using perfmap::profile_capi::copy_in;
using perfmap::profile_capi::guard;

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
  return guard(error, [&]() -> perfmap_status {
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
  });
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
