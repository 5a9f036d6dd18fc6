#include <algorithm>

#include "processes/region_offsets.hpp"
#include "processes/tracker_state.hpp"

namespace perfmap {
void ProcessTracker::on_mmap(const MmapEvent& event) {
  MappedFile file = classify_mapping(event.name);
  file.device_major = event.device_major;
  file.device_minor = event.device_minor;
  file.inode = event.inode;
  file.generation = event.inode_generation;
  file.build_id = event.build_id;
  // Of anonymous memory perf's offset is the address, and that of /proc is 0.
  Region region{AddressRange::clamped(event.range.begin, event.range.size),
                has_offsets(file) ? event.offset : 0, nullptr, event.access};
  region.file = state_->files.intern(std::move(file));
  state_->begun(event.pid, event.time).change(event.time, std::move(region));
}

void ProcessTracker::on_unmap(const UnmapEvent& event) {
  Generation* const known = state_->living(event.pid);
  if (known == nullptr) return;
  const AddressRange range = AddressRange::clamped(event.range.begin, event.range.size);
  known->change(event.time, {range, 0, nullptr, {}});
}

void ProcessTracker::on_fork(const ForkEvent& event) {
  if (event.pid == event.parent) {
    state_->begun(event.pid, event.time).add_thread(event.tid);
    return;
  }
  Generation& parent = state_->begun(event.parent, event.time);
  const auto memory = parent.at(event.time);
  const bool is_copy = !event.lived_before;
  Generation& child =
      state_->begin(event.pid, event.time, is_copy ? ProcessBegin::forked : ProcessBegin::seen,
                    is_copy ? memory : state_->nothing, parent.line(event.time));
  // What both have mapped is the parent's all the same, unless the child mapped it anew.
  child.line(event.time)->began_with = memory;
  child.info().parent = event.parent;
  child.info().comm = parent.info().comm;
}

void ProcessTracker::on_comm(const CommEvent& event) {
  if (event.exec) {
    Generation& former = state_->begun(event.pid, event.time);
    state_->begin_after_exec(former, event.time).info().comm = event.comm;
  } else if (event.pid == event.tid) {
    state_->begun(event.pid, event.time).info().comm = event.comm;
  }
}

void ProcessTracker::on_exit(const ExitEvent& event) {
  Generation* const known = state_->living(event.pid);
  if (known != nullptr && known->remove_thread(event.tid)) state_->end(event.pid, event.time);
}

}  // namespace perfmap
