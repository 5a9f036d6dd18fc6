#include "stacks/recorded_processes.hpp"

#include <algorithm>

namespace perfmap {
namespace {

ProcessTracker::Options tracker_options(const StackOptions& options) {
  ProcessTracker::Options tracker;
  tracker.open_module = options.open_module;
  return tracker;
}

/// jit-PID.dump, which runtimes map so that perf knows of it.
bool is_dump(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

bool may_have_jit(const AddressSpace& space) {
  const auto regions = space.regions();
  return std::any_of(regions.begin(), regions.end(),
                     [](const Region& region) { return jit_room(region) == JitRoom::likely; });
}

}  // namespace

RecordedProcesses::RecordedProcesses(const StackOptions& options)
    : options_(options), tracker_(tracker_options(options)) {}

void RecordedProcesses::take(const RecordView& record) {
  switch (record.type) {
    case RecordType::mmap:
    case RecordType::mmap2:
      if (const auto event = decode_mmap(record)) on_mmap(*event);
      break;
    case RecordType::comm:
      if (const auto event = decode_comm(record)) on_comm(*event);
      break;
    case RecordType::fork:
      if (const auto event = decode_fork(record)) on_fork(*event);
      break;
    case RecordType::exit:
      if (const auto event = decode_exit(record)) tracker_.on_exit(*event);
      break;
    default: break;
  }
}

void RecordedProcesses::on_mmap(const MmapEvent& event) {
  if (event.pid < 0) return;  // the kernel's own
  tracker_.on_mmap(event);
  if (!is_dump(event.name)) return;
  Process& process = process_of(event.pid);
  const std::string path(event.name);
  if (std::find(process.dumps.begin(), process.dumps.end(), path) != process.dumps.end()) return;
  process.dumps.push_back(path);
  process.wants_jit = true;
  process.last = nullptr;
}

void RecordedProcesses::on_fork(const ForkEvent& event) {
  tracker_.on_fork(event);
  auto parent = comms_.find(event.parent_tid);
  if (parent == comms_.end()) parent = comms_.find(event.parent);
  if (parent != comms_.end()) comms_[event.tid] = parent->second;
}

void RecordedProcesses::on_comm(const CommEvent& event) {
  tracker_.on_comm(event);
  comms_[event.tid] = intern(event.comm);
}

std::string_view RecordedProcesses::intern(std::string_view comm) {
  return *names_.emplace(comm).first;
}

std::string_view RecordedProcesses::comm_of(pid_t pid, pid_t tid) const noexcept {
  auto found = comms_.find(tid);
  if (found == comms_.end()) found = comms_.find(pid);
  return found == comms_.end() ? std::string_view() : found->second;
}

/// What is known of it goes when another program, or another process, has the pid.
RecordedProcesses::Process& RecordedProcesses::process_of(pid_t pid) {
  Process& process = processes_[pid];
  const ProcessInfo* const info = tracker_.find(pid);
  const std::uint32_t generation = info != nullptr ? info->generation : 0;
  if (process.generation != generation) {
    process = Process();
    process.generation = generation;
  }
  return process;
}

void RecordedProcesses::look_for_jit(pid_t pid, Process& process, const AddressSpace& space) {
  const ProcessInfo* const info = tracker_.find(pid);
  if (!process.wants_jit || !options_.find_jit || info == nullptr) return;
  if (process.dumps.empty() && !may_have_jit(space)) return;
  process.wants_jit = false;
  auto found = options_.find_jit(*info, process.dumps);
  if (found == nullptr) return;
  process.jit = found;
  tracker_.attach_jit(pid, std::move(found));
}

std::shared_ptr<const ProcessMoment> RecordedProcesses::moment(pid_t pid) {
  static const auto kNothing = std::make_shared<const AddressSpace>();
  auto space = tracker_.at(pid);
  const bool is_known = space != nullptr;
  if (!is_known) space = kNothing;
  Process& process = process_of(pid);
  if (process.last != nullptr && process.last->place.space == space) return process.last;
  look_for_jit(pid, process, *space);
  auto made = std::make_shared<ProcessMoment>();
  made->id = ++moments_;
  made->program = std::uint64_t{static_cast<std::uint32_t>(pid)} << 32 | process.generation;
  made->place = {pid, ProcessTracker::kNow, space, process.jit};
  made->unwind = is_known ? UnwindSpace::attach(tracker_, pid, ProcessTracker::kNow, &failures_)
                          : UnwindSpace::make(*space, {});
  process.last = made;
  return made;
}

}  // namespace perfmap
