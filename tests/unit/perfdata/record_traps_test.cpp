// SPDX-License-Identifier: MIT
// Traps for naive readers of records.

#include <algorithm>
#include <malloc.h>

#include "support/compressed_records.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::record_traps_test {
namespace {

const auto kOrders = {std::endian::little, std::endian::big};

SampleValues at(std::uint64_t time, std::uint64_t id = 0) {
  SampleValues values;
  values.time = time;
  values.id = id;
  values.ip = 0x1000 + time;
  values.pid = 42;
  values.tid = 43;
  return values;
}

std::vector<std::uint64_t> times_of(const RecordingContents& contents) {
  std::vector<std::uint64_t> times;
  for (const RecordWithBytes& record : contents.records) times.push_back(record.view.time);
  return times;
}

using Times = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("data of an AUX trace is skipped", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape;
  const std::string aux = bytes.record(71, bytes.bytes().u64(48).zeros(32).text());
  const std::string data = aux + std::string(48, '\x09') + bytes.sample(shape, at(5));
  const RecordingContents contents = read_all(bytes.file({shape}, data));
  REQUIRE(contents.records.size() == 2);
  CHECK(contents.records[0].view.type == RecordType::auxtrace);
  CHECK(contents.records[0].bytes.size() == 48);
  CHECK(contents.records[1].view.time == 5);
  CHECK(contents.lost_bytes == 0);
}

TEST_CASE("AUX data missing in the file counts as lost", "[perfdata]") {
  const RecordingBytes bytes;
  const std::string aux = bytes.record(71, bytes.bytes().u64(UINT64_MAX).zeros(32).text());
  const RecordingContents contents = read_all(bytes.file({EventShape()}, aux + "abc"));
  CHECK(contents.records.size() == 1);
  CHECK(contents.lost_bytes == 3);
  CHECK(contents.problems.total() == 1);
}

TEST_CASE("a sample id is read from the end of a record", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape{.sample_type = kTid | kTime | kId | kStreamId | kCpu | kIdentifier,
                         .ids = {7}};
  const EventShape other{.sample_type = shape.sample_type, .ids = {8}};
  const std::string data = bytes.comm(42, "short", shape, at(5, 8)) +
                           bytes.comm(42, "a name that is much longer", shape, at(6, 7)) +
                           bytes.record(200, std::string(16, 'x') + bytes.trailer(shape, at(7)));
  const RecordingContents contents = read_all(bytes.file({shape, other}, data));
  REQUIRE(contents.records.size() == 3);
  CHECK(times_of(contents) == Times{5, 6, 6});  // types of 64 and above have none
  CHECK(contents.records[0].view.event == 1);
  CHECK(contents.records[1].view.event == 0);
  const auto comm = decode_comm(contents.records[1].borrowed());
  REQUIRE(comm);
  CHECK(comm->comm == "a name that is much longer");
}

TEST_CASE("without sample ids a fork has its own time, and others have that of the record before",
          "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape{.flags = 0};
  const std::string fork =
      bytes.record(7, bytes.bytes().u32(44).u32(42).u32(45).u32(43).u64(9).text());
  const std::string data = bytes.comm(42, "early", shape, at(5)) + bytes.sample(shape, at(7)) +
                           bytes.comm(42, "later", shape, at(5)) + fork;
  const RecordingContents contents = read_all(bytes.file({shape}, data));
  CHECK(times_of(contents) == Times{0, 7, 7, 9});
  const auto decoded = decode_fork(contents.records.back().borrowed());
  REQUIRE(decoded);
  CHECK(decoded->pid == 44);
  CHECK(decoded->tid == 45);
  CHECK(decoded->parent == 42);
  CHECK(decoded->parent_tid == 43);
}

TEST_CASE("records may follow a compressed one unaligned and span several compressed ones",
          "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape;
  std::string plain;
  for (std::uint64_t i = 1; i <= 100; ++i) plain += bytes.sample(shape, at(i));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{1000}}) {
    CAPTURE(piece);
    CompressedRecords compressed(bytes);
    std::string data;
    bool is_aligned = true;
    for (std::size_t i = 0; i < plain.size(); i += piece, is_aligned = !is_aligned) {
      const std::string part = plain.substr(i, piece);
      data += is_aligned ? compressed.aligned(part) : compressed.unaligned(part);
      if (i % 7 == 0) data += bytes.finished_round();
    }
    const RecordingContents contents = read_all(bytes.file({shape}, data));
    CHECK(contents.facts.is_compressed);
    CHECK(contents.problems.total() == 0);
    REQUIRE(contents.records.size() == 100);
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(contents.records[i].view.time == i + 1);
  }
}

TEST_CASE("a damaged compressed record loses its contents, and the next stream is read",
          "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  CompressedRecords first(bytes);
  CompressedRecords second(bytes);
  const std::string whole = first.unaligned(bytes.sample(shape, at(1)));
  std::string damaged = first.unaligned(bytes.sample(shape, at(2)));
  damaged.replace(8, 4, "\xff\xff\xff\xff");
  std::string good;
  for (std::uint64_t i = 3; i <= 10; ++i) good += bytes.sample(shape, at(i));
  const std::string data = whole + damaged + second.unaligned(good) + bytes.sample(shape, at(11));
  const RecordingContents contents = read_all(bytes.file({shape}, data));
  CHECK(times_of(contents) == Times{1, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(contents.lost_bytes > 0);
  CHECK(contents.problems.total() > 0);
}

TEST_CASE("decompressed data is kept for two rounds, and damaged data is not kept", "[perfdata]") {
  constexpr std::size_t kRound = std::size_t{4} << 20;
  const RecordingBytes bytes;
  const EventShape shape;
  CompressedRecords compressed(bytes);
  std::string data;
  std::uint64_t written = 0;
  for (std::uint64_t round = 1; round <= 12; ++round) {
    std::string plain;
    for (; plain.size() < kRound; ++written) plain += bytes.record(100, std::string(4088, 'x'));
    plain += bytes.sample(shape, at(round)) + std::string(kRound, '\0');
    for (int i = 0; i < 8; ++i) plain += bytes.sample(shape, at(round));
    written += 9;
    data += compressed.unaligned(plain) + bytes.finished_round();
  }
  const Recording recording = recording_of(bytes.file({shape}, data));
  const auto held_now = [] { return ::mallinfo2().hblkhd + ::mallinfo2().uordblks; };
  const std::size_t before = held_now();
  Recording::Reader reader(recording);
  Diagnostics problems(1);
  std::uint64_t read = 0;
  std::size_t max = 0;
  for (auto group = reader.next(problems); !group.empty(); group = reader.next(problems)) {
    read += group.size();
    max = std::max(max, held_now());
  }
  CHECK(read == written);
  CHECK(reader.lost_bytes() == 12 * kRound);
  CHECK(max - std::min(max, before) < 5 * kRound);
}

TEST_CASE("a recording truncated inside a record yields the records before it", "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  const std::string whole =
      bytes.file({shape}, bytes.sample(shape, at(5)) + bytes.sample(shape, at(6)));
  for (std::size_t missing = 1; missing < 32; ++missing) {
    CAPTURE(missing);
    const RecordingContents contents = read_all(whole.substr(0, whole.size() - missing));
    CHECK(times_of(contents) == Times{5});
    CHECK(contents.lost_bytes == 32 - missing);
    CHECK(contents.problems.total() == 2);
    CHECK(contents.problems.items().back().message ==
          "the recording ends " + std::to_string(missing) +
              " bytes before the end given in its header");
    CHECK(contents.position == whole.size() - missing);
  }
}

TEST_CASE("reading continues after a record with an impossible size or type", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const std::string damage =
      GENERATE_COPY(std::string(8, '\0'), bytes.bytes().u32(9).u16(0).u16(7).text(),
                    bytes.bytes().u32(0x10000).u16(0).u16(64).text(), std::string(300, '\x7f'));
  const EventShape shape;
  std::string rest;
  for (std::uint64_t i = 6; i <= 20; ++i) rest += bytes.sample(shape, at(i));
  const RecordingContents contents =
      read_all(bytes.file({shape}, bytes.sample(shape, at(5)) + damage + rest));
  CHECK(contents.records.size() == 16);
  CHECK(contents.lost_bytes == damage.size());
  CHECK(contents.problems.total() == 1);
}

TEST_CASE("samples of events with ids at different offsets find their events", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const std::vector<EventShape> shapes{
      {.sample_type = kIp | kTid | kTime | kId, .ids = {7}},
      {.sample_type = kIp | kTid | kTime | kAddr | kId | kCpu, .ids = {8}},
      {.sample_type = kIp | kTid | kTime | kIdentifier, .ids = {9}}};
  std::string data;
  for (std::uint64_t i = 0; i < 30; ++i) {
    data += bytes.sample(shapes[i % 3], at(10 + i, 7 + i % 3));
    data += bytes.comm(42, "x", shapes[i % 3], at(10 + i, 7 + i % 3));
  }
  const RecordingContents contents = read_all(bytes.file(shapes, data));
  REQUIRE(contents.records.size() == 60);
  for (std::uint64_t i = 0; i < 60; ++i) {
    CHECK(contents.records[i].view.event == i / 2 % 3);
    CHECK(contents.records[i].view.time == 10 + i / 2);
  }
}

TEST_CASE("a record that comes after its round is counted and kept", "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  const std::string data =
      bytes.sample(shape, at(10)) + bytes.finished_round() + bytes.sample(shape, at(30)) +
      bytes.sample(shape, at(20)) + bytes.finished_round() + bytes.finished_round() +
      bytes.sample(shape, at(15)) + bytes.sample(shape, at(40)) + bytes.finished_round();
  const RecordingContents contents = read_all(bytes.file({shape}, data));
  CHECK(times_of(contents) == Times{10, 20, 30, 15, 40});
  CHECK(contents.out_of_order == 1);
}

TEST_CASE("records with equal times keep their order, also across processors", "[perfdata]") {
  const RecordingBytes b;
  const EventShape shape;
  const auto mapping = [&](std::uint64_t time) {
    Bytes body = b.bytes();
    body.u32(42).u32(42).u64(0x1000).u64(0x1000).u64(0).padded("/bin/app");
    return b.record(1, body.raw(b.trailer(shape, {.time = time, .pid = 42, .tid = 42})).text());
  };
  const auto sample = [&](std::uint64_t time) {
    return b.sample(shape, {.ip = 0x1001, .time = time, .pid = 42, .tid = 42});
  };
  const auto order_of = [&](const std::string& data) {
    std::string order;
    for (const RecordWithBytes& record : read_all(recording_of(b.file({shape}, data))).records) {
      order += record.view.type == RecordType::sample ? 's' : 'm';
      order += std::to_string(record.view.time) + " ";
    }
    return order;
  };
  CHECK(order_of(mapping(5) + sample(5)) == "m5 s5 ");
  CHECK(order_of(sample(5) + mapping(5)) == "s5 m5 ");
  CHECK(order_of(mapping(5) + sample(9) + sample(5) + mapping(9)) == "m5 s5 s9 m9 ");
  CHECK(order_of(sample(5) + mapping(9) + mapping(5) + sample(9)) == "s5 m5 m9 s9 ");
  CHECK(order_of(mapping(5) + sample(7) + sample(5) + sample(6) + mapping(5)) == "m5 s5 m5 s6 s7 ");
}

TEST_CASE("records of two processors are sorted without rounds", "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  std::string data;
  for (std::uint64_t i = 0; i < 3000; ++i) data += bytes.sample(shape, at(2 * i + 2));
  for (std::uint64_t i = 0; i < 3000; ++i) data += bytes.sample(shape, at(2 * i + 1));
  const RecordingContents contents = read_all(bytes.file({shape}, data));
  REQUIRE(contents.records.size() == 6000);
  for (std::uint64_t i = 0; i < 6000; ++i) CHECK(contents.records[i].view.time == i + 1);
  CHECK(contents.out_of_order == 0);
}

}  // namespace perfmap::test::record_traps_test
