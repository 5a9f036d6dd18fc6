#include "stacks/injected_records.hpp"

#include <bit>
#include <map>

#include "perfdata/record_header.hpp"

namespace perfmap {
namespace {

using namespace sample_bit;

constexpr std::uint64_t kTrailerFields = kTid | kTime | kId | kStreamId | kCpu | kIdentifier;
constexpr std::size_t kFixed = 72;  // of an MMAP2 record, before the file's name
constexpr std::string_view kNoFile = "//anon";

/// The name, a NUL, and zeros up to a multiple of 8.
std::size_t padded(std::string_view name) noexcept { return name.size() / 8 * 8 + 8; }

/// Addresses that have code, as ranges that do not touch.
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

/// By process. A child begins with a copy of its parent's, as long as all copies together are not
/// more than events that make sense would ask for.
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
