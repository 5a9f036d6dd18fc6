#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

Result<JitdumpBytes> dump_of_map(const Map& map, std::uint32_t pid, Diagnostics& problems) {
  JitdumpBytes dump;
  JitdumpEncoder encoder(dump.bytes);
  encoder.header({.elf_mach = host_elf_machine(), .pid = pid});
  std::string zeros;
  bool fits = true;
  map.for_each(problems, [&](const Entry& entry) {
    if (!fits) return;
    const std::uint64_t size = map.written_size(entry);
    const std::uint64_t code = size <= JitdumpBytes::kMaxZeros ? size : 0;
    fits = dump.bytes.size() + code + entry.name.size() < JitdumpBytes::kMaxBytes;
    if (!fits) return;
    zeros.resize(std::max<std::size_t>(zeros.size(), code));
    LoadRecord load;
    load.range = {entry.range.begin, 0};
    load.pid = load.tid = pid;
    load.vma = entry.range.begin;
    load.code_size = size;
    load.code_index = ++dump.without_code;
    load.name = entry.name;
    load.code = std::string_view(zeros).substr(0, code);
    fits = encoder.load(0, load);
  });
  if (fits) return dump;
  return Failure({Errc::too_large,
                  map.input().name() + " makes a jitdump of more than 1 GiB, most of it zeros",
                  0,
                  {}});
}

namespace {

constexpr std::size_t kFlushAt = std::size_t{256} << 10;
constexpr std::size_t kIndexBytes = sizeof(std::uint64_t);
constexpr std::size_t kMoveFromAt = 32;
constexpr std::size_t kMoveSizeAt = 48;
constexpr std::size_t kCodeSizeAt = 40;

/// A LOAD or MOVE of one of the dumps.
struct Event {
  std::uint64_t time;
  std::uint64_t offset;
  std::uint32_t dump;
  bool is_move;
  std::size_t original;     ///< the event that this is a copy of; its own number if it is not a
                            ///< copy
  std::uint64_t index = 0;  ///< code_index as written
};

/// The offset of a record's code_index, the only field in which copies may differ.
std::size_t index_offset(bool is_move) noexcept { return is_move ? 56 : 48; }

int compare_but_for_index(const JitRecord& a, const JitRecord& b, bool is_move) noexcept {
  const std::size_t index = index_offset(is_move);
  const int front = a.bytes.substr(0, index).compare(b.bytes.substr(0, index));
  return front != 0
             ? front
             : a.bytes.substr(index + kIndexBytes).compare(b.bytes.substr(index + kIndexBytes));
}

class Merger {
 public:
  Merger(std::span<const Jitdump> dumps, OutputFile& out)
      : dumps_(dumps), out_(out), encoder_(buffer_, order_of(dumps)), indexes_(dumps.size()) {
    Diagnostics ignored(0);
    for (const Jitdump& dump : dumps) {
      details_.emplace_back(dump);
      timelines_.emplace_back(dump, ignored);
    }
  }

  Result<DumpMergeStats> run(Diagnostics& problems) {
    if (auto why = check_headers()) return Failure(*std::move(why));
    collect(problems);
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    for (std::size_t i = 0; i < events_.size(); ++i) events_[i].original = i;
    mark_copies();
    write_header();
    for (std::size_t i = 0; i < events_.size(); ++i) write(i);
    out_.write(buffer_);
    return stats_;
  }

 private:
  static std::endian order_of(std::span<const Jitdump> dumps) {
    return dumps.empty() || !dumps.front().header() ? std::endian::native
                                                    : dumps.front().header()->order;
  }

  /// Empty dumps have no header, so they cannot contradict the others.
  std::optional<Error> check_headers() {
    const auto different = [](std::string what) {
      return Error{Errc::invalid_argument, "cannot merge jitdumps " + std::move(what), 0, {}};
    };
    for (const Jitdump& dump : dumps_) {
      if (!dump.header()) continue;
      const JitdumpHeader& one = *dump.header();
      if (!header_) header_ = one;
      if (header_->elf_mach == 0) header_->elf_mach = one.elf_mach;
      if (one.elf_mach != 0 && one.elf_mach != header_->elf_mach) {
        return different("of different machines: " + dump.input().name());
      }
      const bool ticks = (header_->flags & JitdumpHeader::kArchTimestamp) != 0;
      if (dump.has_tsc_times() != ticks) {
        return different("of nanoseconds and of ticks: " + dump.input().name());
      }
      stats_.several_pids = stats_.several_pids || one.pid != header_->pid;
    }
    return std::nullopt;
  }

  void collect(Diagnostics& problems) {
    for (std::uint32_t i = 0; i < dumps_.size(); ++i) {
      dumps_[i].for_each(problems, [&](const JitRecord& record) {
        const bool is_move = decode_move(record).has_value();
        if (is_move || decode_load(record)) {
          events_.push_back({record.time, record.offset, i, is_move, 0});
        } else if (!record.is(JitRecordKind::debug_info) &&
                   !record.is(JitRecordKind::unwinding_info)) {
          ++stats_.other_records;
        }
      });
    }
  }

  JitRecord record_of(const Event& event) const noexcept {
    return dumps_[event.dump].record_at(event.offset).value_or(JitRecord());
  }

  /// Copies have the same time, so after sorting they are neighbours, in any order.
  void mark_copies() {
    if (dumps_.size() < 2) return;
    for (std::size_t begin = 0; begin < events_.size();) {
      std::size_t end = begin + 1;
      while (end < events_.size() && events_[end].time == events_[begin].time) ++end;
      if (end - begin > 1) mark_copies(begin, end);
      begin = end;
    }
  }
  void mark_copies(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> order(end - begin);
    std::iota(order.begin(), order.end(), begin);
    const auto compare = [this](std::size_t a, std::size_t b) {
      const bool is_move = events_[a].is_move;
      if (is_move != events_[b].is_move) return is_move ? 1 : -1;
      return compare_but_for_index(record_of(events_[a]), record_of(events_[b]), is_move);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return compare(a, b) < 0; });
    for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
      if (compare(order[first], order[i]) != 0) {
        first = i;
      } else if (events_[order[i]].dump != events_[order[first]].dump) {
        events_[order[i]].original = order[first];
      }
    }
  }

  void write_header() {
    JitdumpHeader header = header_.value_or(JitdumpHeader());
    header.version = 1;
    header.total_size = JitdumpHeader::kSize;
    header.flags &= JitdumpHeader::kArchTimestamp;
    encoder_.header(header);
  }

  void write(std::size_t number) {
    Event& event = events_[number];
    const JitRecord record = record_of(event);
    // Not written either if the file was truncated: the rest is useless.
    if (decode_move(record)) write_move(event, number, record);
    if (decode_load(record)) write_load(event, number, record);
    if (buffer_.size() < kFlushAt) return;
    out_.write(buffer_);
    buffer_.clear();
  }

  void write_load(Event& event, std::size_t number, const JitRecord& record) {
    const bool is_copy = event.original != number;
    event.index = is_copy ? events_[event.original].index : ++stats_.loads;
    indexes_[event.dump][event.offset] = event.index;
    if (is_copy) {
      ++stats_.duplicates;
      return;
    }
    const JitDetails& details = details_[event.dump];
    for (const auto& before : {details.debug_info(event.offset), details.unwinding(event.offset)}) {
      const auto detail = before ? dumps_[event.dump].record_at(*before) : std::nullopt;
      if (detail) put(*detail, {});
    }
    // A LOAD whose size exceeds its code is written with the code it has.
    const auto load = decode_load(record);
    const std::uint64_t size = has_odd_sizes(record) ? load->code.size() : load->code_size;
    put(record, {{index_offset(false), event.index}, {kCodeSizeAt, size}});
  }

  /// Writes a MOVE with the address where its code really was: with a wrong one it could mean other
  /// code in the merged dump. Its size is at most what was loaded.
  void write_move(const Event& event, std::size_t number, const JitRecord& record) {
    const auto moved = timelines_[event.dump].moved_by(event.offset);
    const bool is_copy = event.original != number;
    if (is_copy || !moved) {
      ++(is_copy ? stats_.duplicates : stats_.lost_moves);
      return;
    }
    ++stats_.moves;
    put(record, {{index_offset(true), indexes_[event.dump][moved->load]},
                 {kMoveFromAt, moved->from},
                 {kMoveSizeAt, moved->size}});
  }

  struct Patch {
    std::size_t offset;
    std::uint64_t value;
  };
  /// The original record fits the size limit; the patched one may not.
  void put(const JitRecord& record, std::initializer_list<Patch> patches) {
    const std::size_t begin = buffer_.size();
    if (!encoder_.record(record)) return;
    for (const Patch& patch : patches) {
      std::uint64_t value = patch.value;
      if (encoder_.order() != std::endian::native) value = __builtin_bswap64(value);
      std::memcpy(buffer_.data() + begin + patch.offset, &value, sizeof value);
    }
  }

  std::span<const Jitdump> dumps_;
  OutputFile& out_;
  std::string buffer_;
  JitdumpEncoder encoder_;
  std::optional<JitdumpHeader> header_;
  std::vector<JitDetails> details_;
  std::vector<Timeline> timelines_;
  std::vector<Event> events_;
  std::vector<std::map<std::uint64_t, std::uint64_t>> indexes_;  // one per dump, of LOADs by offset
  DumpMergeStats stats_;
};

}  // namespace

Result<DumpMergeStats> merge_dumps(std::span<const Jitdump> dumps, OutputFile& out,
                                   Diagnostics& problems) {
  return Merger(dumps, out).run(problems);
}

}  // namespace perfmap
