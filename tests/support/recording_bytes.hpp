// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap::test {

/// PERF_SAMPLE_…, as documented in perf_event_open(2).
enum SampleBit : std::uint64_t {
  kIp = 1,
  kTid = 2,
  kTime = 4,
  kAddr = 8,
  kRead = 16,
  kCallchain = 32,
  kId = 64,
  kCpu = 128,
  kPeriod = 256,
  kStreamId = 512,
  kRaw = 1024,
  kBranchStack = 2048,
  kRegsUser = 4096,
  kStackUser = 8192,
  kWeight = 1 << 14,
  kDataSrc = 1 << 15,
  kIdentifier = 1 << 16,
  kTransaction = 1 << 17,
  kRegsIntr = 1 << 18,
  kPhysAddr = 1 << 19,
  kAux = 1 << 20,
  kCgroup = 1 << 21,
  kDataPageSize = 1 << 22,
  kCodePageSize = 1 << 23,
  kWeightStruct = 1 << 24,
};

/// Appends numbers in a given byte order.
class Bytes {
 public:
  explicit Bytes(std::endian order) : order_(order) {}

  Bytes& u8(std::uint64_t value) { return number(value, 1); }
  Bytes& u16(std::uint64_t value) { return number(value, 2); }
  Bytes& u32(std::uint64_t value) { return number(value, 4); }
  Bytes& u64(std::uint64_t value) { return number(value, 8); }
  Bytes& u64s(const std::vector<std::uint64_t>& values) {
    for (const std::uint64_t value : values) u64(value);
    return *this;
  }
  Bytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  /// With a NUL, and zeros up to a multiple of 8.
  Bytes& padded(std::string_view text) { return raw(text).zeros(8 - text.size() % 8); }
  /// As in features: a length, then that many bytes.
  Bytes& string(std::string_view text) {
    return u32(text.size() + 64 - text.size() % 64).raw(text).zeros(64 - text.size() % 64);
  }
  Bytes& zeros(std::size_t count) { return raw(std::string(count, '\0')); }

  const std::string& text() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  Bytes& number(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) {
      const unsigned at = order_ == std::endian::little ? i : size - 1 - i;
      bytes_ += static_cast<char>(value >> (8 * at));
    }
    return *this;
  }

  std::endian order_;
  std::string bytes_;
};

/// perf_event_attr.
struct EventShape {
  std::uint64_t sample_type = kIp | kTid | kTime;
  std::vector<std::uint64_t> ids = {};
  std::uint64_t flags = 1 << 18;  ///< bit n: flag n; 18 is sample_id_all
  std::uint32_t size = 128;
  std::uint32_t stated_size = size;  ///< the content of its size field
  std::uint32_t type = 1;
  std::uint64_t config = 0;
  std::uint64_t period = 99;
  std::uint64_t read_format = 0;
  std::uint64_t branch_sample_type = 0;
  std::uint64_t regs_user = 0;
  std::uint64_t regs_intr = 0;
  std::uint32_t stack_user = 0;
  std::uint32_t clock = 0;
};

/// The values of a sample, or of the trailer of another record.
struct SampleValues {
  std::uint64_t id = 0, ip = 0, time = 0, addr = 0, stream_id = 0, period = 0;
  std::uint32_t pid = 0, tid = 0, cpu = 0;
  std::vector<std::uint64_t> read = {};  ///< raw words
  std::vector<std::uint64_t> callchain = {};
  std::string raw = {};                      ///< its size plus 4 is a multiple of 8
  std::vector<std::uint64_t> branches = {};  ///< three words each
  std::uint64_t abi_user = 2, abi_intr = 2;
  std::vector<std::uint64_t> regs_user = {}, regs_intr = {};
  std::string stack = {};  ///< the whole copy; its size is a multiple of 8
  std::uint64_t stack_used = 0;
  std::string aux = {};
};

/// Builds the bytes of a recording field by field, to test the reader.
class RecordingBytes {
 public:
  explicit RecordingBytes(std::endian order = std::endian::native) : order_(order) {}

  Bytes bytes() const { return Bytes(order_); }
  std::string event(const EventShape& shape) const {
    std::uint64_t flags = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
      // On big-endian machines bit fields start at the most significant bit.
      const unsigned place = order_ == std::endian::little ? bit : 63 - bit;
      flags |= (shape.flags >> bit & 1) << place;
    }
    Bytes b(order_);
    b.u32(shape.type).u32(shape.stated_size).u64(shape.config).u64(shape.period);
    b.u64(shape.sample_type).u64(shape.read_format).u64(flags).u32(0).u32(0).u64(0).u64(0);
    b.u64(shape.branch_sample_type).u64(shape.regs_user).u32(shape.stack_user).u32(shape.clock);
    b.u64(shape.regs_intr).zeros(4096);
    return b.text().substr(0, shape.size);
  }
  std::string record(std::uint32_t type, std::string_view body, std::uint16_t misc = 0) const {
    return Bytes(order_).u32(type).u16(misc).u16(8 + body.size()).raw(body).text();
  }
  std::string finished_round() const { return record(68, ""); }
  std::string comm(std::uint32_t pid, std::string_view name, const EventShape& shape,
                   const SampleValues& trailer) const {
    Bytes body(order_);
    body.u32(pid).u32(trailer.tid).padded(name).raw(this->trailer(shape, trailer));
    return record(3, body.text());
  }
  std::string trailer(const EventShape& shape, const SampleValues& values) const {
    Bytes b(order_);
    const auto has = [&](std::uint64_t bit) { return (shape.sample_type & bit) != 0; };
    if ((shape.flags >> 18 & 1) == 0) return "";
    if (has(kTid)) b.u32(values.pid).u32(values.tid);
    if (has(kTime)) b.u64(values.time);
    if (has(kId)) b.u64(values.id);
    if (has(kStreamId)) b.u64(values.stream_id);
    if (has(kCpu)) b.u32(values.cpu).u32(0);
    if (has(kIdentifier)) b.u64(values.id);
    return b.text();
  }
  std::string sample(const EventShape& shape, const SampleValues& values,
                     std::uint16_t misc = 2) const {
    return record(9, sample_body(shape, values), misc);
  }

  struct Parts {
    std::uint64_t header_size = 104;
    std::uint64_t attr_size = 0;  ///< 0: the actual size
    bool events_last = false;     ///< after the records
    bool was_killed = false;
    bool bitmap_of_32 = false;                      ///< as written by 32-bit machines
    std::map<unsigned, std::string> features = {};  ///< bytes by feature number
  };
  std::string file(const std::vector<EventShape>& shapes, std::string_view data) const {
    return file(shapes, data, Parts());
  }
  std::string file(const std::vector<EventShape>& shapes, std::string_view data,
                   const Parts& parts) const;
  std::string pipe(const std::vector<EventShape>& shapes, std::string_view data) const {
    Bytes b(order_);
    b.u64(0x32454c4946524550).u64(16);
    for (const EventShape& shape : shapes) {
      b.raw(record(64, Bytes(order_).raw(event(shape)).u64s(shape.ids).text()));
    }
    return b.raw(data).text();
  }

 private:
  std::string sample_body(const EventShape& shape, const SampleValues& v) const;

  std::endian order_;
};

}  // namespace perfmap::test
