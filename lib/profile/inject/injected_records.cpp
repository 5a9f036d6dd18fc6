// SPDX-License-Identifier: MIT
#include "inject/injected_records.hpp"

#include <algorithm>
#include <bit>
#include <ctime>
#include <map>
#include <set>

#include "base/machines.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process.hpp"

namespace perfmap {

namespace {

class Mappings {
 public:
  Mappings(const Timeline& timeline, const std::vector<CodeInElf>& code)
      : timeline_(timeline), code_(code) {}

  void take(const JitRecord& record) {
    const std::uint64_t time = timeline_.time_of(record);
    if (const auto load = decode_load(record)) {
      add(time, load->range, record.offset);
    } else if (const auto move = decode_move(record)) {
      const auto moved = timeline_.moved_by(record.offset);
      if (!moved) return;
      take_away(time, *moved);
      add(time, move->range, moved->load);
    }
  }

  std::vector<CodeMapping> take_all() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const CodeMapping& a, const CodeMapping& b) { return a.time < b.time; });
    return std::move(found_);
  }

 private:
  const CodeInElf* find(std::uint64_t load) const noexcept {
    const auto found = std::lower_bound(
        code_.begin(), code_.end(), load,
        [](const CodeInElf& code, std::uint64_t wanted) { return code.load < wanted; });
    return found == code_.end() || found->load != load ? nullptr : &*found;
  }

  void add(std::uint64_t time, const AddressRange& range, std::uint64_t load) {
    const CodeInElf* const code = find(load);
    if (code == nullptr) return;
    const auto there = AddressRange::clamped(range.begin, std::min(range.size, code->size));
    if (there.size != 0) found_.push_back({time, there, code->offset, 0});
  }

  /// Newer code may already have replaced part of it.
  void take_away(std::uint64_t time, const MovedCode& moved) {
    const CodeInElf* const code = find(moved.load);
    if (code == nullptr) return;
    const AddressRange range = AddressRange::clamped(moved.from, code->size);
    if (range.size == 0) return;
    if (timeline_.find(range.begin, time) || timeline_.find(range.end() - 1, time)) return;
    found_.push_back({time, range, CodeMapping::kNothing, 0});
  }

  const Timeline& timeline_;
  const std::vector<CodeInElf>& code_;
  std::vector<CodeMapping> found_;
};

}  // namespace

std::vector<CodeMapping> code_mappings(const Timeline& timeline, const std::vector<CodeInElf>& code,
                                       bool is_timed, std::uint64_t otherwise) {
  Mappings mappings(timeline, code);
  Diagnostics ignored(1);  // reported when the timeline was made
  timeline.dump().for_each(ignored, [&](const JitRecord& record) { mappings.take(record); });
  std::vector<CodeMapping> all = mappings.take_all();
  if (!is_timed) {
    for (CodeMapping& mapping : all) mapping.time = otherwise;
  }
  return all;
}

std::optional<CodeMapping> frames_mapping(const std::vector<CodeMapping>& mappings,
                                          const ElfOfAllCode& elf) {
  const AddressRange place{elf.frames_in_memory, elf.frames.size};
  if (place.size == 0 || place.begin == 0 || place.begin > UINT64_MAX - place.size) return {};
  std::optional<std::uint64_t> first;
  for (const CodeMapping& mapping : mappings) {
    first = std::min(first.value_or(mapping.time), mapping.time);
    const AddressRange& code = mapping.range;
    if (code.begin < place.end() && place.begin < code.end()) return std::nullopt;
  }
  if (!first) return std::nullopt;
  return CodeMapping{*first, place, elf.frames.begin, 0};
}

std::optional<std::uint16_t> machine_recorded(const Jitdump& dump, std::string_view arch) noexcept {
  const MachineInfo* const machine = find_machine(arch);
  const std::uint32_t said = dump.header() ? dump.header()->elf_mach : 0;
  if (machine == nullptr || runs(*machine, said)) return std::nullopt;
  return machine->elf;
}

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
    ++count_;
    if (!is_kept(record)) return;
    size_ = static_cast<std::uint32_t>(record.bytes.size());
    found.bytes += record.bytes.size();
    if (found.first_time == 0) found.first_time = record.time;
    pass_process_event(record, *this);
  }

  void on_mmap(const MmapEvent& event) {
    if (event.pid < 0) return;
    found.pids.insert(event.pid);
    found.processes.on_mmap(event);
    if (is_dump_path(event.name)) {
      std::string path(event.name);
      if (known_.emplace(event.pid, path).second) {
        found.markers.push_back({event.pid, event.time, std::move(path)});
      }
    } else if (event.range.size != 0 && is_anonymous(event.name)) {
      found.changes.push_back({number(), event.time, event.pid, size_, event.range});
    }
  }
  void on_comm(const CommEvent& event) {
    found.pids.insert(event.pid);
    found.processes.on_comm(event);
    if (event.exec) found.changes.push_back({number(), event.time, event.pid, 0, {}});
  }
  void on_fork(const ForkEvent& event) {
    found.pids.insert(event.pid);
    found.processes.on_fork(event);
    if (event.pid != event.parent)
      found.changes.push_back({number(), event.time, event.pid, 0, {}, event.parent});
  }
  void on_exit(const ExitEvent& event) { found.processes.on_exit(event); }

  RecordingSurvey found;

 private:
  /// Counts from 0.
  std::uint64_t number() const noexcept { return count_ - 1; }

  std::uint64_t count_ = 0;  ///< of the records, with the one in hand
  std::uint32_t size_ = 0;   ///< bytes of the one in hand
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
      const bool has_trace = record.type == RecordType::auxtrace;
      const bool has_formats = recording.facts().is_pipe && record.type == RecordType::tracing_data;
      if (has_trace || has_formats) {
        return Failure(
            Error::unsupported(recording.input().name() + " has " +
                               (has_trace ? "AUX trace data" : "formats of tracepoints") +
                               " between its records, which cannot be copied"));
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

namespace {

using namespace sample_bit;

constexpr std::uint64_t kTrailerFields = kTid | kTime | kId | kStreamId | kCpu | kIdentifier;
constexpr std::size_t kFixed = 72;  // of an MMAP2 record, before the file's name
constexpr std::string_view kNoFile = "//anon";

/// The size of the name with a NUL, padded with zeros to a multiple of 8.
std::size_t padded(std::string_view name) noexcept { return name.size() / 8 * 8 + 8; }

/// Addresses with code, as ranges that do not touch.
class Covered {
 public:
  void add(const AddressRange& range) {
    Address begin = range.begin;
    Address end = range.end();
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ranges_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(begin, end);
  }
  bool meets(const AddressRange& range) const {
    const auto after = ranges_.lower_bound(range.end());
    return after != ranges_.begin() && std::prev(after)->second > range.begin;
  }
  void clear() { ranges_.clear(); }
  std::size_t size() const noexcept { return ranges_.size(); }

 private:
  std::map<Address, Address> ranges_;
};

/// By process. A child begins with a copy of its parent's ranges, as long as all copies together do
/// not exceed what plausible events need.
class CoveredProcesses {
 public:
  Covered& of(pid_t pid) { return all_[pid]; }
  void fork(pid_t parent, pid_t child) {
    const auto found = all_.find(parent);
    const std::size_t size = found == all_.end() ? 0 : found->second.size();
    if (size == 0 || size > room_) {
      all_.erase(child);
      return;
    }
    room_ -= size;
    Covered copy = found->second;
    all_.insert_or_assign(child, std::move(copy));
  }

 private:
  std::map<pid_t, Covered> all_;
  std::size_t room_ = std::size_t{1} << 22;
};

}  // namespace

MmapRecords::MmapRecords(const std::vector<RecordedEvent>& events, bool swapped)
    : swapped_(swapped) {
  if (events.empty() || !events.front().has_sample_ids) return;
  trailer_ = events.front().sample_type & kTrailerFields;
  if (!events.front().ids.empty()) id_ = events.front().ids.front();
}

std::size_t MmapRecords::size_of(std::string_view file) const noexcept {
  return kFixed + padded(file) + static_cast<std::size_t>(8 * std::popcount(trailer_));
}

template <class T>
void MmapRecords::number(T value) {
  if (swapped_) {
    if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
    if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
  }
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void MmapRecords::add_trailer(pid_t pid, std::uint64_t time) {
  if ((trailer_ & kTid) != 0) {
    number(static_cast<std::uint32_t>(pid));
    number(static_cast<std::uint32_t>(pid));
  }
  if ((trailer_ & kTime) != 0) number(time);
  if ((trailer_ & kId) != 0) number(id_);
  if ((trailer_ & kStreamId) != 0) number(id_);
  if ((trailer_ & kCpu) != 0) number(std::uint64_t{0});
  if ((trailer_ & kIdentifier) != 0) number(id_);
}

std::string_view MmapRecords::make(pid_t pid, const CodeMapping& mapping, std::string_view file) {
  constexpr std::uint32_t kReadExecute = 1 | 4;
  constexpr std::uint32_t kMapPrivate = 2;
  const bool is_gone = mapping.offset == CodeMapping::kNothing;
  if (is_gone) file = kNoFile;
  bytes_.clear();
  number(static_cast<std::uint32_t>(RecordType::mmap2));
  number(static_cast<std::uint16_t>(CpuMode::user));
  number(static_cast<std::uint16_t>(size_of(file)));
  number(static_cast<std::uint32_t>(pid));
  number(static_cast<std::uint32_t>(pid));
  number(mapping.range.begin);
  number(mapping.range.size);
  number(is_gone ? std::uint64_t{0} : mapping.offset);
  for (int i = 0; i < 3; ++i) number(std::uint64_t{0});  // device, inode, its generation
  number(kReadExecute);
  number(kMapPrivate);
  bytes_.append(file).append(padded(file) - file.size(), '\0');
  add_trailer(pid, mapping.time);
  return bytes_;
}

std::unordered_set<std::uint64_t> hidden_records(const std::vector<MemoryChange>& changes,
                                                 const std::vector<CodeMapping>& mappings,
                                                 const std::vector<pid_t>& pids) {
  std::unordered_set<std::uint64_t> hidden;
  CoveredProcesses covered;
  auto mapping = mappings.begin();
  for (const MemoryChange& change : changes) {
    for (; mapping != mappings.end() && mapping->time <= change.time; ++mapping) {
      if (mapping->offset != CodeMapping::kNothing)
        covered.of(pids[mapping->dump]).add(mapping->range);
    }
    if (change.parent != 0) {
      covered.fork(change.parent, change.pid);
    } else if (change.range.size == 0) {
      covered.of(change.pid).clear();
    } else if (covered.of(change.pid).meets(change.range)) {
      hidden.insert(change.number);
    }
  }
  return hidden;
}

}  // namespace perfmap
