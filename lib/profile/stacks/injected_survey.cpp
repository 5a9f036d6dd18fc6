#include "stacks/injected_survey.hpp"

#include <algorithm>
#include <ctime>
#include <set>

#include "perfmap/memory_map.hpp"
#include "processes/dump_name.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kCompressed = 27;  // the feature

bool is_anonymous(std::string_view name) {
  switch (classify_mapping(name).kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::memfd:
    case RegionKind::huge_pages:
    case RegionKind::shared_memory: return true;
    default: return false;
  }
}

class Surveyor {
 public:
  explicit Surveyor(ProcessTracker::OpenModule open_module) {
    ProcessTracker::Options options;
    options.open_module = std::move(open_module);
    found.processes = ProcessTracker(std::move(options));
  }

  void take(const RecordView& record) {
    const std::uint64_t number = count_++;
    if (!is_kept(record)) return;
    found.bytes += record.bytes.size();
    if (found.first_time == 0) found.first_time = record.time;
    if (const auto event = decode_mmap(record)) {
      take_mmap(*event, number, static_cast<std::uint32_t>(record.bytes.size()));
    } else if (const auto comm = decode_comm(record)) {
      found.processes.on_comm(*comm);
      if (comm->exec) found.changes.push_back({number, record.time, comm->pid, 0, {}});
    } else if (const auto fork = decode_fork(record)) {
      found.processes.on_fork(*fork);
      if (fork->pid != fork->parent)
        found.changes.push_back({number, record.time, fork->pid, 0, {}, fork->parent});
    } else if (const auto exit = decode_exit(record)) {
      found.processes.on_exit(*exit);
    }
  }

  RecordingSurvey found;

 private:
  void take_mmap(const MmapEvent& event, std::uint64_t number, std::uint32_t size) {
    if (event.pid < 0) return;
    found.processes.on_mmap(event);
    if (is_dump_name(event.name)) {
      std::string path(event.name);
      if (known_.emplace(event.pid, path).second) {
        found.markers.push_back({event.pid, event.time, std::move(path)});
      }
    } else if (event.range.size != 0 && is_anonymous(event.name)) {
      found.changes.push_back({number, event.time, event.pid, size, event.range});
    }
  }

  std::uint64_t count_ = 0;
  std::set<std::pair<pid_t, std::string>> known_;
};

}  // namespace

bool RecordingSurvey::is_monotonic() const noexcept {
  return !events.empty() &&
         std::all_of(events.begin(), events.end(),
                     [](const RecordedEvent& event) { return event.clock == CLOCK_MONOTONIC; });
}

bool is_kept(const RecordView& record) noexcept {
  if (record.type != RecordType::header_feature || record.bytes.size() < 16) return true;
  return Words(record.bytes.substr(8, 8), record.is_swapped)[0] != kCompressed;
}

Result<RecordingSurvey> survey(const Recording& recording, ProcessTracker::OpenModule open_module,
                               Diagnostics& problems) {
  Surveyor surveyor(std::move(open_module));
  Recording::Reader reader(recording);
  for (auto records = reader.next(problems); !records.empty(); records = reader.next(problems)) {
    for (const RecordView& record : records) {
      const bool has_tail = record.type == RecordType::auxtrace ||
                            (recording.facts().is_pipe && record.type == RecordType::tracing_data);
      if (has_tail) {
        return Failure({Errc::unsupported,
                        recording.input().name() + " has traces beside its records, which cannot "
                                                   "be written again",
                        0,
                        {}});
      }
      surveyor.take(record);
    }
  }
  surveyor.found.facts = reader.facts();
  surveyor.found.events.assign(reader.events().begin(), reader.events().end());
  surveyor.found.lost_bytes = reader.lost_bytes();
  surveyor.found.out_of_order = reader.out_of_order();
  return std::move(surveyor.found);
}

}  // namespace perfmap
