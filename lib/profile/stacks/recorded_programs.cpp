#include "stacks/recorded_programs.hpp"

#include "perfmap/memory_map.hpp"
#include "stacks/shown_frames.hpp"

namespace perfmap {

RecordedPrograms::RecordedPrograms(const RecordingFacts& facts, FrameTable& table) : table_(table) {
  for (const RecordedBuildId& one : facts.build_ids) {
    if (!one.is_kernel) build_ids_.try_emplace(one.path, one.build_id);
  }
}

void RecordedPrograms::take(const RecordView& record) {
  switch (record.type) {
    case RecordType::mmap:
    case RecordType::mmap2:
      if (const auto event = decode_mmap(record)) on_mmap(*event);
      break;
    case RecordType::comm:
      if (const auto event = decode_comm(record)) {
        if (event->pid != event->tid) break;
        Process& process = processes_[event->pid];
        if (event->exec) process = Process{{}, 0, true, false};
        process.comm = event->comm;
      }
      break;
    case RecordType::fork:
      if (const auto event = decode_fork(record)) {
        if (event->pid == event->parent) break;
        const auto parent = processes_.find(event->parent);
        const bool is_copy = parent != processes_.end() && !event->lived_before;
        Process child = is_copy ? parent->second : Process();
        processes_[event->pid] = std::move(child);
      }
      break;
    default: break;
  }
}

std::uint32_t RecordedPrograms::of(pid_t pid) const noexcept {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? 0 : found->second.mapping;
}

void RecordedPrograms::on_mmap(const MmapEvent& event) {
  if (event.pid < 0 || !event.access.execute) return;
  Process& process = processes_[event.pid];
  if (process.is_certain) return;
  const MappedFile file = classify_mapping(event.name);
  if (!file.is_file()) return;
  const bool is_named = is_named_after(process.comm, file.name);
  process.is_certain = process.was_executed || is_named;
  if (process.mapping != 0 && !is_named) return;
  FrameMapping mapping;
  mapping.range = event.range;
  mapping.offset = event.offset;
  mapping.path = file.name;
  mapping.build_id = event.build_id;
  const auto known = build_ids_.find(file.name);
  if (mapping.build_id.empty() && known != build_ids_.end()) mapping.build_id = known->second;
  mapping.kind = FrameKind::native;
  process.mapping = table_.add(mapping);
}

}  // namespace perfmap
