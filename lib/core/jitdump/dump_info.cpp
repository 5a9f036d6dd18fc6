#include "perfmap/dump_info.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace perfmap {
namespace {

void add_size(std::uint64_t& sum, std::uint64_t size) {
  sum += std::min(size, std::numeric_limits<std::uint64_t>::max() - sum);
}

/// Counts names and whose they look like.
class NameCount {
 public:
  void add(std::string_view name) {
    hashes_.push_back(std::hash<std::string_view>{}(name));
    ++runtimes_[static_cast<std::size_t>(decode_name(name).runtime)];
  }
  std::uint64_t different() {
    std::sort(hashes_.begin(), hashes_.end());
    return static_cast<std::uint64_t>(std::unique(hashes_.begin(), hashes_.end()) -
                                      hashes_.begin());
  }
  Runtime runtime() const {
    const auto* const most = std::max_element(runtimes_.begin() + 1, runtimes_.end());
    return *most == 0 ? Runtime::unknown : static_cast<Runtime>(most - runtimes_.begin());
  }

 private:
  std::vector<std::uint64_t> hashes_;
  std::array<std::uint64_t, 32> runtimes_{};
};

void count(const JitRecord& record, DumpInfo& info, NameCount& names) {
  info.first_time = std::min(info.first_time.value_or(record.time), record.time);
  info.last_time = std::max(info.last_time, record.time);
  if (record.id >= info.records.size()) {
    ++info.unknown_records;
    return;
  }
  ++info.records[record.id];
  if (const auto load = decode_load(record)) {
    names.add(load->name);
    info.code_bytes += load->code.size();
    add_size(info.claimed, std::max<std::uint64_t>(load->range.size, 1));
  } else if (record.is(JitRecordKind::load) ||
             (record.is(JitRecordKind::move) && !decode_move(record))) {
    ++info.bad_records;
  }
}

}  // namespace

DumpInfo dump_info(const Timeline& timeline) {
  const Jitdump& dump = timeline.dump();
  DumpInfo info;
  NameCount names;
  Diagnostics ignored(0);
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(ignored)) count(*record, info, names);
  info.bytes = dump.bytes().size();
  info.lost_bytes = reader.lost_bytes();
  info.names = names.different();
  info.runtime = names.runtime();
  bool any = false;
  timeline.for_each_at(Timeline::kEnd, [&](const PlacedCode& placed) {
    if (!any) info.first = placed.piece.begin;
    any = true;
    const std::uint64_t size = std::max<std::uint64_t>(placed.piece.size, 1);
    add_size(info.covered, size);
    info.last = placed.piece.begin + (size - 1);
  });
  return info;
}

}  // namespace perfmap
