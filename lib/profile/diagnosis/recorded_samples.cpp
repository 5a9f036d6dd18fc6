#include "diagnosis/recorded_samples.hpp"

#include <algorithm>
#include <ctime>

#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "process/dump_name.hpp"
#include "process/jit_lineage.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kPage = 4096;
/// More are counted, but not told apart.
constexpr std::size_t kMaxPages = std::size_t{1} << 20;

class SampleReader {
 public:
  using IsNamed = std::function<bool(pid_t, Address, std::uint64_t)>;

  explicit SampleReader(const IsNamed& is_named)
      : is_named_(is_named), tracker_(ProcessTracker::Options()) {}

  void take(const RecordView& record, std::span<const RecordedEvent> events) {
    switch (record.type) {
      case RecordType::mmap:
      case RecordType::mmap2:
        if (const auto event = decode_mmap(record)) take_mmap(*event);
        break;
      case RecordType::comm:
        if (const auto event = decode_comm(record)) {
          found.pids.insert(event->pid);
          introduced_.insert(event->pid);
          if (event->exec) take_exec(event->pid);
          tracker_.on_comm(*event);
        }
        break;
      case RecordType::fork:
        if (const auto event = decode_fork(record)) take_fork(*event);
        break;
      case RecordType::exit:
        if (const auto event = decode_exit(record)) tracker_.on_exit(*event);
        break;
      case RecordType::namespaces:
        if (const auto event = decode_namespaces(record)) take_namespaces(*event);
        break;
      case RecordType::sample:
        if (record.event >= events.size()) break;
        if (const auto sample = decode_sample(record, events[record.event])) take_sample(*sample);
        break;
      default: break;
    }
  }

  RecordedSamples found;

 private:
  void take_mmap(const MmapEvent& event) {
    if (event.pid < 0) return;
    tracker_.on_mmap(event);
    found.pids.insert(event.pid);
    if (event.access.execute && event.name.starts_with('/')) {
      std::string& program = found.processes[event.pid].program;
      if (program.empty()) program = event.name;
    }
    if (is_dump_name(event.name)) {
      found.markers.push_back({event.pid, event.time, std::string(event.name)});
    }
  }

  void take_exec(pid_t pid) {
    RecordedProcess& process = found.processes[pid];
    process.program.clear();
    process.executed = ++executed_;
  }

  void take_fork(const ForkEvent& event) {
    tracker_.on_fork(event);
    introduced_.insert(event.pid);
    if (event.pid == event.parent) return;
    const auto parent = found.processes.find(event.parent);
    RecordedProcess process;
    if (parent != found.processes.end() && !event.lived_before) {
      process.program = parent->second.program;
      process.executed = parent->second.executed;
    }
    found.processes[event.pid] = std::move(process);
  }

  void take_namespaces(const NamespacesRecord& event) {
    constexpr std::size_t kPid = 3;  // enum in perf_event.h: net, uts, ipc, pid, ...
    if (event.namespaces.size() <= kPid) return;
    found.processes[event.pid].pid_namespace = event.namespaces[kPid].inode;
  }

  void take_sample(const RecordedSample& sample) {
    if (found.first == 0) found.first = sample.time;
    found.last = std::max(found.last, sample.time);
    found.pids.insert(sample.pid);
    RecordedProcess& process = found.processes[sample.pid];
    if (!introduced_.contains(sample.pid)) process.began_unseen = true;
    auto space = tracker_.at(sample.pid);
    if (space != nullptr) {
      process.memory = space;
      process.lineage = tracker_.lineage(sample.pid);
    }
    constexpr std::uint64_t k32Bit = 1;  // PERF_SAMPLE_REGS_ABI_32
    process.samples_of_32_bit += sample.user.abi == k32Bit ? 1 : 0;
    if (sample.mode != CpuMode::user) return;
    const Region* const region = space == nullptr ? nullptr : space->find(sample.ip);
    if (region == nullptr || jit_region_kind(*region) != JitRegionKind::likely) return;
    JitSamples& jit = found.jit[sample.pid];
    ++jit.count;
    if (is_named(*region, sample)) return;
    ++jit.unnamed;
    const Address page = sample.ip / kPage * kPage;
    if (pages_ < kMaxPages && jit.pages[page]++ == 0) ++pages_;
  }

  /// By the process, or by those that it has the memory from.
  bool is_named(const Region& region, const RecordedSample& sample) const {
    bool answer = false;
    tracker_.lineage(sample.pid)
        ->visit(&region, sample.ip, [&](const JitLineage& one, std::uint64_t, bool) {
          return answer = is_named_(one.pid, sample.ip, sample.time);
        });
    return answer;
  }

  const IsNamed& is_named_;
  ProcessTracker tracker_;
  std::unordered_set<pid_t> introduced_;
  std::size_t pages_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace

bool RecordedSamples::is_monotonic() const noexcept {
  return !events.empty() &&
         std::all_of(events.begin(), events.end(),
                     [](const RecordedEvent& event) { return event.clock == CLOCK_MONOTONIC; });
}

std::vector<pid_t> inherits_from(const RecordedProcess& process) {
  std::vector<pid_t> pids;
  if (process.memory == nullptr || process.lineage == nullptr) return pids;
  const JitLineage* const own = process.lineage.get();
  const JitLineage::Ask take = [&](const JitLineage& one, std::uint64_t, bool) {
    const bool is_known = std::find(pids.begin(), pids.end(), one.pid) != pids.end();
    if (&one != own && one.pid != own->pid && !is_known) pids.push_back(one.pid);
    return false;
  };
  for (const Region& region : process.memory->regions()) {
    if (jit_region_kind(region) == JitRegionKind::likely)
      own->visit(&region, region.range.begin, take);
  }
  return pids;
}

RecordedSamples read_samples(
    const Recording& recording,
    const std::function<bool(pid_t pid, Address address, std::uint64_t time)>& is_named) {
  SampleReader samples(is_named);
  Recording::Reader reader(recording);
  Diagnostics ignored(1);
  for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
    for (const RecordView& record : records) samples.take(record, reader.events());
  }
  samples.found.facts = reader.facts();
  samples.found.events.assign(reader.events().begin(), reader.events().end());
  return std::move(samples.found);
}

}  // namespace perfmap
