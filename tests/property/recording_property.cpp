// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/compressed_records.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::recording_property {
namespace {

/// Random numbers that depend only on the seed.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::vector<std::uint64_t> words(std::size_t count) {
    std::vector<std::uint64_t> values(count);
    for (std::uint64_t& value : values) value = below(1000);
    return values;
  }

 private:
  std::mt19937 engine_;
};

/// A written record and its expected time.
struct Written {
  std::uint64_t time = 0;
  bool is_sample = true;
  std::uint32_t event = 0;
  SampleValues values;
};

std::vector<EventShape> random_shapes(Random& random) {
  std::vector<EventShape> shapes(1 + random.below(3));
  const std::uint64_t way = random.one_in(2) ? kIdentifier : kId;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EventShape& shape = shapes[i];
    shape.sample_type = kTime | kTid | (random.below(1 << 25) & ~std::uint64_t{kIdentifier | kId});
    if (shapes.size() > 1 || random.one_in(2)) shape.sample_type |= way;
    shape.ids = {0xabc000 + 2 * i, 0xabc001 + 2 * i};
    shape.size = random.one_in(2) ? 136 : 104;
    shape.stated_size = shape.size;
    shape.flags = std::uint64_t{1} << 18;
    shape.read_format = random.below(32);
    shape.branch_sample_type = random.below(1 << 20);
    shape.regs_user = random.below(1 << 17);
    shape.regs_intr = random.below(1 << 17);
  }
  return shapes;
}

std::vector<std::uint64_t> random_read(Random& random, std::uint64_t format) {
  const auto each = static_cast<std::size_t>(1 + std::popcount(format & (4 | 16)));
  const auto times = static_cast<std::size_t>(std::popcount(format & (1 | 2)));
  if ((format & 8) == 0) return random.words(times + each);
  const std::size_t members = random.below(4);
  std::vector<std::uint64_t> words = random.words(1 + times + members * each);
  words[0] = members;
  return words;
}

SampleValues random_values(Random& random, const EventShape& shape) {
  SampleValues values;
  values.id = shape.ids[random.below(2)];
  values.ip = random.below(1000);
  values.addr = random.below(1000);
  values.period = random.below(1000);
  values.pid = static_cast<std::uint32_t>(random.below(1000));
  values.tid = static_cast<std::uint32_t>(random.below(1000));
  values.cpu = static_cast<std::uint32_t>(random.below(64));
  values.read = random_read(random, shape.read_format);
  values.callchain = random.words(random.below(6));
  values.raw = std::string(4 + 8 * random.below(3), 'r');
  values.branches = random.words(3 * random.below(4));
  values.abi_user = random.below(3);
  values.abi_intr = random.below(3);
  values.regs_user = random.words(static_cast<std::size_t>(std::popcount(shape.regs_user)));
  values.regs_intr = random.words(static_cast<std::size_t>(std::popcount(shape.regs_intr)));
  values.stack = std::string(8 * random.below(5), 's');
  values.stack_used = random.below(40);
  values.aux = std::string(8 * random.below(3), 'a');
  return values;
}

/// Rounds as from a recorder with several processors: records of a round are not earlier than those
/// of the round before the previous one. `round_length` 0: no rounds, and any time.
std::uint64_t random_time(Random& random, std::uint64_t round, std::uint64_t round_length) {
  if (random.one_in(20)) return 0;
  if (round_length == 0) return 1 + random.below(500);
  return 1 + round * round_length + random.below(2 * round_length);
}

struct RandomRecording {
  std::vector<EventShape> shapes;
  std::vector<Written> written;  // in the expected order
  std::string file;

  RandomRecording(unsigned seed, const RecordingBytes& bytes) {
    Random random(seed);
    shapes = random_shapes(random);
    CompressedRecords compressed(bytes);
    const bool is_compressed = random.one_in(2);
    const std::uint64_t round_length = random.one_in(3) ? 0 : 50;
    std::string data;
    std::string plain;
    const auto flush = [&](std::size_t keep) {
      const std::string part = plain.substr(0, plain.size() - std::min(keep, plain.size()));
      data += random.one_in(2) ? compressed.unaligned(part) : compressed.aligned(part);
      plain.erase(0, part.size());
    };
    std::uint64_t latest = 0;
    for (std::uint64_t round = 0; round < 6; ++round) {
      for (std::uint64_t n = random.below(30); n > 0; --n) {
        plain += write_one(random, bytes, random_time(random, round, round_length), latest);
        if (!is_compressed)
          data += std::exchange(plain, "");
        else if (random.one_in(5))
          flush(random.below(40));
      }
      if (is_compressed) flush(0);
      if (round_length != 0) data += bytes.finished_round();
    }
    data += bytes.finished_round();  // no recording is empty
    file = random.one_in(2) ? bytes.file(shapes, data) : bytes.pipe(shapes, data);
    std::stable_sort(written.begin(), written.end(),
                     [](const Written& a, const Written& b) { return a.time < b.time; });
  }

 private:
  std::string write_one(Random& random, const RecordingBytes& bytes, std::uint64_t time,
                        std::uint64_t& latest) {
    Written one;
    one.event = static_cast<std::uint32_t>(random.below(shapes.size()));
    one.is_sample = !random.one_in(4);
    one.values = random_values(random, shapes[one.event]);
    one.values.time = time;
    latest = std::max(latest, time);
    one.time = time == 0 ? latest : time;
    written.push_back(one);
    const EventShape& shape = shapes[one.event];
    return one.is_sample
               ? bytes.sample(shape, one.values)
               : bytes.comm(one.values.pid, std::string(random.below(20), 'c'), shape, one.values);
  }
};

std::vector<std::uint64_t> list_of(const Words& words) {
  std::vector<std::uint64_t> list;
  for (std::size_t i = 0; i < words.size(); ++i) list.push_back(words[i]);
  return list;
}

void check_registers(const SampledRegisters& read, std::uint64_t mask, std::uint64_t abi,
                     const std::vector<std::uint64_t>& values) {
  CHECK(read.abi == abi);
  CHECK(list_of(read.values) == (abi == 0 ? std::vector<std::uint64_t>() : values));
  CHECK(read.mask == (abi == 0 ? 0 : mask));
}

void check_sample(const RecordedSample& read, const SampleValues& v, const EventShape& shape) {
  const auto has = [&](std::uint64_t bit) { return (shape.sample_type & bit) != 0; };
  CHECK(read.pid == static_cast<pid_t>(v.pid));
  CHECK(read.tid == static_cast<pid_t>(v.tid));
  CHECK(read.time == v.time);
  CHECK(read.ip == (has(kIp) ? v.ip : 0));
  CHECK(read.address == (has(kAddr) ? v.addr : 0));
  CHECK(read.id == (has(kId | kIdentifier) ? v.id : 0));
  CHECK(read.cpu == (has(kCpu) ? v.cpu : UINT32_MAX));
  CHECK(read.period == (has(kPeriod) ? v.period : shape.period));
  if (has(kCallchain)) CHECK(list_of(read.callchain) == v.callchain);
  CHECK(read.raw == (has(kRaw) ? v.raw : ""));
  if (has(kRegsUser)) check_registers(read.user, shape.regs_user, v.abi_user, v.regs_user);
  if (has(kRegsIntr)) check_registers(read.interrupted, shape.regs_intr, v.abi_intr, v.regs_intr);
  CHECK(read.user_stack == (has(kStackUser) ? v.stack.substr(0, v.stack_used) : ""));
  CHECK(read.user_stack_room == (has(kStackUser) ? v.stack.size() : 0));
}

}  // namespace

TEST_CASE("a written recording is read back in the order of a stable sort by time",
          "[perfdata][property]") {
  const auto seed = GENERATE(range(0U, 400U));
  CAPTURE(seed);
  const RecordingBytes bytes(seed % 2 == 0 ? std::endian::little : std::endian::big);
  const RandomRecording random(seed, bytes);
  const RecordingContents contents = read_all(random.file);
  CHECK(contents.problems.total() == 0);
  CHECK(contents.out_of_order == 0);
  CHECK(contents.position == random.file.size());

  std::vector<RecordWithBytes> records = contents.records;
  std::erase_if(records, [](const RecordWithBytes& record) {
    return record.view.type == RecordType::header_attr;
  });
  REQUIRE(records.size() == random.written.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Written& written = random.written[i];
    CAPTURE(i, written.time);
    const RecordView view = records[i].borrowed();
    CHECK(view.time == written.time);
    CHECK(view.event == written.event);
    CHECK((view.type == RecordType::sample) == written.is_sample);
    if (!written.is_sample) continue;
    const auto sample = decode_sample(view, contents.events[view.event]);
    REQUIRE(sample);
    check_sample(*sample, written.values, random.shapes[written.event]);
  }
}

}  // namespace perfmap::test::recording_property
