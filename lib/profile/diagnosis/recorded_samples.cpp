#include "diagnosis/recorded_samples.hpp"

#include <algorithm>
#include <ctime>

#include "perfmap/address_space.hpp"
#include "perfmap/process_tracker.hpp"
#include "processes/jit_lineage.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kPage = 4096;
/// More are counted, but not told apart.
constexpr std::size_t kMostPages = std::size_t{1} << 20;

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
          if (event->exec) found.files.erase(event->pid);
          tracker_.on_comm(*event);
        }
        break;
      case RecordType::fork:
        if (const auto event = decode_fork(record)) tracker_.on_fork(*event);
        break;
      case RecordType::exit:
        if (const auto event = decode_exit(record)) tracker_.on_exit(*event);
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
      found.files[event.pid].emplace(event.name);
    }
    if (is_dump_name(event.name)) {
      found.markers.push_back({event.pid, event.time, std::string(event.name)});
    }
  }

  void take_sample(const RecordedSample& sample) {
    if (found.first == 0) found.first = sample.time;
    found.last = std::max(found.last, sample.time);
    found.pids.insert(sample.pid);
    if (sample.mode != CpuMode::user) return;
    const auto space = tracker_.at(sample.pid);
    const Region* const region = space == nullptr ? nullptr : space->find(sample.ip);
    if (region == nullptr || jit_room(*region) != JitRoom::likely) return;
    JitSamples& jit = found.jit[sample.pid];
    ++jit.count;
    if (is_named(*region, sample)) return;
    ++jit.unnamed;
    const Address page = sample.ip / kPage * kPage;
    if (pages_ < kMostPages && jit.pages[page]++ == 0) ++pages_;
  }

  /// By the process, or by those that it has the memory from.
  bool is_named(const Region& region, const RecordedSample& sample) const {
    bool answer = false;
    tracker_.lineage(sample.pid)
        ->visit(region, sample.ip, [&](const JitLineage& one, std::uint64_t, bool) {
          return answer = is_named_(one.pid, sample.ip, sample.time);
        });
    return answer;
  }

  const IsNamed& is_named_;
  ProcessTracker tracker_;
  std::size_t pages_ = 0;
};

}  // namespace

bool RecordedSamples::is_monotonic() const noexcept {
  return !events.empty() &&
         std::all_of(events.begin(), events.end(),
                     [](const RecordedEvent& event) { return event.clock == CLOCK_MONOTONIC; });
}

bool is_dump_name(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
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
