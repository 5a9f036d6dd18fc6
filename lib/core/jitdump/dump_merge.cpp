// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

namespace {

/// The size of the dump that dump_of_map() makes.
std::uint64_t dump_size(const Map& map) {
  std::uint64_t bytes = JitdumpHeader::kSize;
  Diagnostics ignored(0);
  map.for_each(ignored, [&](const Entry& entry) {
    bytes += LoadRecord::kFixed + entry.name.size() + 1 + zeros_for(map.written_size(entry));
  });
  return bytes;
}

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
  std::size_t load = 0;     ///< of a LOAD: its number in the dump
  std::uint64_t index = 0;  ///< code_index as written
};

/// A LOAD of one of the dumps.
struct Load {
  std::uint64_t offset;
  std::uint64_t index = 0;  ///< code_index as written; 0: not yet
};

/// The offset of a record's code_index, the only field in which copies may differ.
std::size_t index_offset(bool is_move) noexcept { return is_move ? 56 : 48; }

/// Empty if the file was truncated.
std::string_view after_index(const JitRecord& record, bool is_move) noexcept {
  const std::size_t after = index_offset(is_move) + kIndexBytes;
  return record.bytes.substr(std::min(after, record.bytes.size()));
}

bool equal_but_for_index(const JitRecord& a, const JitRecord& b, bool is_move) noexcept {
  const std::size_t index = index_offset(is_move);
  return a.bytes.substr(0, index) == b.bytes.substr(0, index) &&
         after_index(a, is_move) == after_index(b, is_move);
}

std::size_t hash_but_for_index(const JitRecord& record, bool is_move) noexcept {
  const std::size_t index = index_offset(is_move);
  const std::hash<std::string_view> hash;
  const std::size_t front = hash(record.bytes.substr(0, index));
  return front * 31 + hash(after_index(record, is_move));
}

class Merger {
 public:
  Merger(std::span<const Jitdump> dumps, OutputFile& out)
      : dumps_(dumps), out_(out), encoder_(buffer_, order_of(dumps)), loads_(dumps.size()) {
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
      return Error::invalid("cannot merge " + std::move(what));
    };
    for (const Jitdump& dump : dumps_) {
      if (!dump.header()) continue;
      const JitdumpHeader& one = *dump.header();
      if (!header_) header_ = one;
      if (header_->elf_mach == 0) header_->elf_mach = one.elf_mach;
      if (one.elf_mach != 0 && one.elf_mach != header_->elf_mach) {
        return different("jitdumps of different machines: " + dump.input().name());
      }
      const bool ticks = (header_->flags & JitdumpHeader::kArchTimestamp) != 0;
      if (dump.has_tsc_times() != ticks) {
        return different("a jitdump with times in nanoseconds and one with ticks: " +
                         dump.input().name());
      }
      // A dump that was made from a map has no pid.
      if (header_->pid == 0) header_->pid = one.pid;
      stats_.several_pids = stats_.several_pids || (one.pid != 0 && one.pid != header_->pid);
    }
    return std::nullopt;
  }

  void collect(Diagnostics& problems) {
    for (std::uint32_t i = 0; i < dumps_.size(); ++i) {
      dumps_[i].for_each(problems, [&](const JitRecord& record) {
        const bool is_move = decode_move(record).has_value();
        if (is_move || decode_load(record)) {
          events_.push_back({record.time, record.offset, i, is_move, 0, loads_[i].size()});
          if (!is_move) loads_[i].push_back({record.offset});
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
    struct Hashed {
      std::size_t event;
      JitRecord record;
      std::size_t hash;
    };
    std::vector<Hashed> order;
    for (std::size_t i = begin; i < end; ++i) {
      const JitRecord record = record_of(events_[i]);
      order.push_back({i, record, hash_but_for_index(record, events_[i].is_move)});
    }
    // Sorted by what was copied, because the bytes may change at any time. Other records with the
    // hash of a copy would hide it, so that it is written twice.
    const auto key = [this](const Hashed& one) {
      return std::tuple(one.hash, events_[one.event].is_move, one.event);
    };
    std::sort(order.begin(), order.end(),
              [&](const Hashed& a, const Hashed& b) { return key(a) < key(b); });
    const auto are_copies = [this](const Hashed& a, const Hashed& b) {
      const bool is_move = events_[a.event].is_move;
      return a.hash == b.hash && is_move == events_[b.event].is_move &&
             equal_but_for_index(a.record, b.record, is_move);
    };
    for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
      if (!are_copies(order[first], order[i])) {
        first = i;
      } else if (events_[order[i].event].dump != events_[order[first].event].dump) {
        events_[order[i].event].original = order[first].event;
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
    if (decode_move(record)) {
      write_move(event, number, record);
    } else if (const auto load = decode_load(record); load && !event.is_move) {
      write_load(event, number, record, *load);
    }
    if (buffer_.size() < kFlushAt) return;
    out_.write(buffer_);
    buffer_.clear();
  }

  void write_load(Event& event, std::size_t number, const JitRecord& record,
                  const LoadRecord& load) {
    const bool is_copy = event.original != number;
    event.index = is_copy ? events_[event.original].index : ++stats_.loads;
    loads_[event.dump][event.load].index = event.index;
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
    const std::uint64_t size = has_odd_sizes(record) ? load.code.size() : load.code_size;
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
    const std::vector<Load>& loads = loads_[event.dump];
    const auto load =
        std::lower_bound(loads.begin(), loads.end(), moved->load,
                         [](const Load& one, std::uint64_t offset) { return one.offset < offset; });
    put(record, {{index_offset(true), load == loads.end() ? 0 : load->index},
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
  std::vector<std::vector<Load>> loads_;  // by dump, in order of their offsets
  DumpMergeStats stats_;
};

}  // namespace

Result<JitdumpBytes> dump_of_map(const Map& map, std::uint32_t pid, Diagnostics& problems,
                                 std::uint64_t max_bytes) {
  const auto too_large = [&] {
    return Failure(Error::too_large(map.input().name() +
                                    " cannot be converted: the jitdump would have " +
                                    more_than(max_bytes) + ", mostly zeros"));
  };
  const std::uint64_t bytes = dump_size(map);
  if (bytes > max_bytes) return too_large();
  JitdumpBytes dump;
  dump.bytes.reserve(bytes);
  JitdumpEncoder encoder(dump.bytes);
  encoder.header({.elf_mach = host_elf_machine(), .pid = pid});
  std::string zeros;
  bool fits = true;
  map.for_each(problems, [&](const Entry& entry) {
    const std::uint64_t size = map.written_size(entry);
    const std::uint64_t code = zeros_for(size);
    // Another process may change the lines meanwhile.
    fits = fits && dump.bytes.size() + code + entry.name.size() < max_bytes;
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
  return fits ? Result<JitdumpBytes>(std::move(dump)) : too_large();
}

Result<DumpMergeStats> merge_dumps(std::span<const Jitdump> dumps, OutputFile& out,
                                   Diagnostics& problems) {
  return Merger(dumps, out).run(problems);
}

}  // namespace perfmap
