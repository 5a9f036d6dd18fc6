#include <algorithm>
#include <bit>

#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

using namespace sample_bit;

/// The fields of a sample, one after the other. Once one of them does not fit, nothing is taken.
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

  /// Keeps `value` where that field is not there.
  void word(std::uint64_t bit, std::uint64_t& value) noexcept {
    if (!has(bit)) return;
    const std::uint64_t read = cursor_.u64();
    if (cursor_.ok()) value = read;
  }
  /// As many as a count before them says.
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

/// PERF_SAMPLE_READ: counters, of one event or of its group.
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

/// A size, and unless that is 0, so many bytes, and how many of them mean something.
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

/// What every sample of its event has at the same place.
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

std::optional<RecordedSample> decode_sample(const RecordView& record,
                                            const RecordedEvent& event) noexcept {
  if (record.type != RecordType::sample || record.bytes.size() < kRecordHeader) {
    return std::nullopt;
  }
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
