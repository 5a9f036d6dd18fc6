// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>

#include "base/cursor.hpp"
#include "perfdata/record_header.hpp"

namespace perfmap {

namespace {

/// A cursor over the body of a record.
Cursor body_of(const RecordView& record) noexcept {
  const std::string_view body =
      record.bytes.size() < kRecordHeader ? "" : record.bytes.substr(kRecordHeader);
  return Cursor(body, order_of(record.is_swapped));
}

/// An event that `read` reads from the body of a record of that type; nothing if it is too short.
template <class Event, class Read>
std::optional<Event> decode_event(const RecordView& record, RecordType type, Read read) noexcept {
  if (record.type != type) return std::nullopt;
  Cursor body = body_of(record);
  Event event;
  event.time = record.time;
  read(body, event);
  return body.ok() ? std::optional(event) : std::nullopt;
}

void take_identity(Cursor& body, const RecordView& record, MmapEvent& event) noexcept {
  constexpr std::size_t kMaxBuildId = 20;
  if ((record.misc & misc_bit::kMmapBuildId) == 0) {
    event.device_major = body.u32();
    event.device_minor = body.u32();
    event.inode = body.u64();
    event.inode_generation = body.u64();
    return;
  }
  const std::size_t size = body.u8();
  body.skip(3);
  event.build_id = body.bytes(kMaxBuildId).substr(0, size);
}

void take_access(Cursor& body, MmapEvent& event) noexcept {
  constexpr std::uint32_t kRead = 1;
  constexpr std::uint32_t kWrite = 2;
  constexpr std::uint32_t kExecute = 4;
  constexpr std::uint32_t kMapShared = 1;
  const std::uint32_t protection = body.u32();
  event.access.read = (protection & kRead) != 0;
  event.access.write = (protection & kWrite) != 0;
  event.access.execute = (protection & kExecute) != 0;
  event.access.shared = (body.u32() & kMapShared) != 0;
}

using namespace sample_bit;

/// The fields of a sample in order. After a field that does not fit, no further values are stored.
class SampleBody {
 public:
  SampleBody(const RecordView& record, const RecordedEvent& event) noexcept
      : cursor_(record.bytes.substr(kRecordHeader), order_of(record.is_swapped)),
        event_(&event),
        swapped_(record.is_swapped) {}

  bool has(std::uint64_t bits) const noexcept {
    return (event_->sample_type & bits) != 0 && cursor_.ok();
  }
  Cursor& cursor() noexcept { return cursor_; }

  /// Leaves `value` unchanged if the field is absent.
  void word(std::uint64_t bit, std::uint64_t& value) noexcept {
    if (!has(bit)) return;
    const std::uint64_t read = cursor_.u64();
    if (cursor_.ok()) value = read;
  }
  /// As many words as the count before them states.
  Words words() noexcept { return words(cursor_.u64()); }
  Words words(std::uint64_t count) noexcept { return Words(many(count, 8), swapped_); }
  void skip_many(std::uint64_t count, std::uint64_t size) noexcept { many(count, size); }

 private:
  std::string_view many(std::uint64_t count, std::uint64_t size) noexcept {
    return cursor_.bytes(count <= UINT16_MAX ? count * size : UINT64_MAX);
  }

  Cursor cursor_;
  const RecordedEvent* event_;
  bool swapped_;
};

constexpr std::uint64_t words_for(std::uint64_t bits) noexcept {
  return static_cast<std::uint64_t>(std::popcount(bits));
}

/// PERF_SAMPLE_READ: counters of one event or of its group.
void skip_read(SampleBody& body, std::uint64_t format) noexcept {
  constexpr std::uint64_t kTimes = 1 | 2;
  constexpr std::uint64_t kIdAndLost = 4 | 16;
  constexpr std::uint64_t kGroup = 8;
  const std::uint64_t each = 1 + words_for(format & kIdAndLost);
  const std::uint64_t count = (format & kGroup) != 0 ? body.cursor().u64() : 1;
  body.skip_many(words_for(format & kTimes), 8);
  body.skip_many(count, 8 * each);
}

void skip_branches(SampleBody& body, std::uint64_t branch_type) noexcept {
  constexpr std::uint64_t kHardwareIndex = 1U << 17;
  constexpr std::uint64_t kCounters = 1U << 19;
  const std::uint64_t count = body.cursor().u64();
  if ((branch_type & kHardwareIndex) != 0) body.cursor().skip(8);
  body.skip_many(count, 24);
  if ((branch_type & kCounters) != 0) body.skip_many(count, 8);
}

SampledRegisters read_registers(SampleBody& body, std::uint64_t mask) noexcept {
  SampledRegisters registers;
  const std::uint64_t abi = body.cursor().u64();
  if (!body.cursor().ok() || abi == 0) return registers;
  const Words values = body.words(words_for(mask));
  if (!body.cursor().ok()) return registers;
  registers.abi = abi;
  registers.mask = mask;
  registers.values = values;
  return registers;
}

/// A size and, unless that is 0, as many bytes, and the number of valid bytes.
void read_user_stack(SampleBody& body, RecordedSample& sample) noexcept {
  Cursor& cursor = body.cursor();
  const std::uint64_t room = cursor.u64();
  if (room == 0) return;
  const std::string_view copy = cursor.bytes(room);
  const std::uint64_t used = cursor.u64();
  if (!cursor.ok()) return;
  sample.user_stack = copy.substr(0, std::min<std::uint64_t>(used, copy.size()));
  sample.user_stack_room = room;
}

/// The fields at fixed positions in all samples of an event.
void read_fixed(SampleBody& body, RecordedSample& sample) noexcept {
  body.word(kIdentifier, sample.id);
  body.word(kIp, sample.ip);
  if (body.has(kTid)) {
    sample.pid = body.cursor().i32();
    sample.tid = body.cursor().i32();
  }
  body.word(kTime, sample.time);
  body.word(kAddress, sample.address);
  body.word(kId, sample.id);
  if (body.has(kStreamId)) body.cursor().skip(8);
  if (body.has(kCpu)) {
    const std::uint32_t cpu = body.cursor().u32();
    body.cursor().skip(4);
    if (body.cursor().ok()) sample.cpu = cpu;
  }
  body.word(kPeriod, sample.period);
}

void read_variable(SampleBody& body, const RecordedEvent& event, RecordedSample& sample) noexcept {
  if (body.has(kRead)) skip_read(body, event.read_format);
  if (body.has(kCallchain)) sample.callchain = body.words();
  if (body.has(kRaw)) sample.raw = body.cursor().bytes(body.cursor().u32());
  if (body.has(kBranchStack)) skip_branches(body, event.branch_sample_type);
  if (body.has(kUserRegisters)) sample.user = read_registers(body, event.user_registers);
  if (body.has(kUserStack)) read_user_stack(body, sample);
  if (body.has(kWeight | kWeightStruct)) body.cursor().skip(8);
  if (body.has(kDataSource)) body.cursor().skip(8);
  if (body.has(kTransaction)) body.cursor().skip(8);
  if (body.has(kInterruptRegisters)) {
    sample.interrupted = read_registers(body, event.interrupt_registers);
  }
}

CpuMode mode_of(std::uint16_t misc) noexcept {
  const unsigned mode = misc & misc_bit::kCpuMode;
  return mode <= static_cast<unsigned>(CpuMode::guest_user) ? static_cast<CpuMode>(mode)
                                                            : CpuMode::unknown;
}

}  // namespace

std::optional<MmapEvent> decode_mmap(const RecordView& record) noexcept {
  const bool has_more = record.type == RecordType::mmap2;
  if (!has_more && record.type != RecordType::mmap) return std::nullopt;
  Cursor body = body_of(record);
  MmapEvent event;
  event.time = record.time;
  event.pid = body.i32();
  body.skip(4);  // the thread that forked
  const Address begin = body.u64();
  event.range = AddressRange::clamped(begin, body.u64());
  event.offset = body.u64();
  if (has_more) {
    take_identity(body, record, event);
    take_access(body, event);
  } else {
    event.access.execute = (record.misc & misc_bit::kMmapData) == 0;
  }
  event.name = body.c_string();
  if (!body.ok()) return std::nullopt;
  return event;
}

std::optional<CommEvent> decode_comm(const RecordView& record) noexcept {
  return decode_event<CommEvent>(record, RecordType::comm, [&](Cursor& body, CommEvent& event) {
    event.pid = body.i32();
    event.tid = body.i32();
    event.comm = body.c_string();
    event.exec = (record.misc & misc_bit::kCommExec) != 0;
  });
}

std::optional<ForkEvent> decode_fork(const RecordView& record) noexcept {
  return decode_event<ForkEvent>(record, RecordType::fork, [&](Cursor& body, ForkEvent& event) {
    event.pid = body.i32();
    event.parent = body.i32();
    event.tid = body.i32();
    event.parent_tid = body.i32();
    event.lived_before = (record.misc & misc_bit::kForkExec) != 0;
    body.skip(8);  // the time
  });
}

std::optional<ExitEvent> decode_exit(const RecordView& record) noexcept {
  return decode_event<ExitEvent>(record, RecordType::exit, [](Cursor& body, ExitEvent& event) {
    event.pid = body.i32();
    body.skip(4);  // the parent
    event.tid = body.i32();
    body.skip(4 + 8);
  });
}

std::optional<LostRecord> decode_lost(const RecordView& record) noexcept {
  Cursor body = body_of(record);
  if (record.type == RecordType::lost) {
    body.skip(8);  // of which event
  } else if (record.type != RecordType::lost_samples) {
    return std::nullopt;
  }
  const LostRecord lost{body.u64()};
  if (!body.ok()) return std::nullopt;
  return lost;
}

std::optional<NamespacesRecord> decode_namespaces(const RecordView& record) {
  if (record.type != RecordType::namespaces) return std::nullopt;
  Cursor body = body_of(record);
  NamespacesRecord decoded;
  decoded.pid = body.i32();
  decoded.tid = body.i32();
  const std::uint64_t count = body.u64();
  if (!body.ok() || count > body.rest().size() / 16) return std::nullopt;
  decoded.namespaces.resize(count);
  for (NamespacesRecord::Namespace& entry : decoded.namespaces) {
    entry.device = body.u64();
    entry.inode = body.u64();
  }
  return decoded;
}

std::optional<KsymbolRecord> decode_ksymbol(const RecordView& record) noexcept {
  if (record.type != RecordType::ksymbol) return std::nullopt;
  Cursor body = body_of(record);
  KsymbolRecord decoded;
  const Address begin = body.u64();
  decoded.range = AddressRange::clamped(begin, body.u32());
  decoded.type = body.u16();
  decoded.unregister = (body.u16() & 1) != 0;
  decoded.name = body.c_string();
  if (!body.ok()) return std::nullopt;
  return decoded;
}

std::optional<DeferredCallchain> decode_deferred(const RecordView& record) noexcept {
  if (record.type != RecordType::callchain_deferred) return std::nullopt;
  Cursor body = body_of(record);
  DeferredCallchain decoded;
  decoded.cookie = body.u64();
  const std::uint64_t count = body.u64();
  if (!body.ok() || count > body.rest().size() / 8) return std::nullopt;
  decoded.callchain = Words(body.bytes(count * 8), record.is_swapped);
  if (body.rest().size() >= 8) {
    decoded.pid = body.i32();
    decoded.tid = body.i32();
  }
  return decoded;
}

std::optional<RecordedSample> decode_sample(const RecordView& record,
                                            const RecordedEvent& event) noexcept {
  if (record.type != RecordType::sample || record.bytes.size() < kRecordHeader) return std::nullopt;
  RecordedSample sample;
  sample.time = record.time;
  sample.event = record.event;
  sample.mode = mode_of(record.misc);
  if (!event.is_frequency && event.period != 0) sample.period = event.period;
  SampleBody body(record, event);
  read_fixed(body, sample);
  read_variable(body, event, sample);
  return sample;
}

}  // namespace perfmap
