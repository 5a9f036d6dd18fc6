#include "capi/border.hpp"

using perfmap::profile_capi::copy_out;
using perfmap::profile_capi::guard;
using perfmap::profile_capi::to_c;

struct perfmap_space {
  std::shared_ptr<const perfmap::AddressSpace> space;
  perfmap::ProcessInfo process;
};

namespace {

uint32_t to_c(const perfmap::Access& access) noexcept {
  return (access.read ? PERFMAP_ACCESS_READ : 0u) | (access.write ? PERFMAP_ACCESS_WRITE : 0u) |
         (access.execute ? PERFMAP_ACCESS_EXECUTE : 0u) |
         (access.shared ? PERFMAP_ACCESS_SHARED : 0u);
}

perfmap_region to_c(const perfmap::Region& region) noexcept {
  const perfmap::MappedFile& file = *region.file;
  perfmap_region out{};
  out.begin = region.range.begin;
  out.size = region.range.size;
  out.offset = region.offset;
  out.access = to_c(region.access);
  out.kind = static_cast<int32_t>(file.kind);
  out.jit = static_cast<int32_t>(perfmap::jit_room(region));
  out.device_major = file.device_major;
  out.device_minor = file.device_minor;
  out.inode = file.inode;
  out.name = file.name.data();
  out.name_size = file.name.size();
  out.build_id = file.build_id.data();
  out.build_id_size = file.build_id.size();
  return out;
}

}  // namespace

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
  copy_out(to_c(space->process), out);
}

perfmap_status perfmap_space_find(const perfmap_space* space, uint64_t address,
                                  perfmap_region* out) {
  const perfmap::Region* const region = space->space->find(address);
  if (region == nullptr) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*region), out);
  return PERFMAP_OK;
}

size_t perfmap_space_size(const perfmap_space* space) { return space->space->regions().size(); }

void perfmap_space_region(const perfmap_space* space, size_t index, perfmap_region* out) {
  copy_out(to_c(space->space->regions()[index]), out);
}
