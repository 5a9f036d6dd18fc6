// SPDX-License-Identifier: MIT
// Decoding of records.

#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::decode_test {
namespace {

const auto kOrders = {std::endian::little, std::endian::big};

RecordView view_of(const std::string& bytes, RecordType type, std::endian order,
                   std::uint16_t misc = 0) {
  RecordView view;
  view.type = type;
  view.misc = misc;
  view.time = 99;
  view.is_swapped = order != std::endian::native;
  view.bytes = bytes;
  return view;
}

RecordedEvent event_of(const EventShape& shape) {
  RecordedEvent event;
  event.sample_type = shape.sample_type;
  event.read_format = shape.read_format;
  event.branch_sample_type = shape.branch_sample_type;
  event.user_registers = shape.regs_user;
  event.interrupt_registers = shape.regs_intr;
  return event;
}

/// All fields that a sample can have.
EventShape full_shape() {
  return {.sample_type = (1 << 24) - 1,
          .read_format = 1 | 2 | 4 | 8 | 16,
          .branch_sample_type = 1 << 17 | 1 << 19,
          .regs_user = 1 << 6 | 1 << 7 | 1 << 8,
          .regs_intr = 1 << 0};
}

SampleValues full_values() {
  SampleValues values{.id = 7, .ip = 0x401000, .time = 55, .addr = 0x7000, .stream_id = 3};
  values.period = 1000;
  values.pid = 42;
  values.tid = 43;
  values.cpu = 5;
  values.read = {2, 10, 10, 1, 2, 3, 4, 5, 6};  // two members of a group: value, id, lost each
  values.callchain = {UINT64_MAX - 511, 0x401000, 0x402000};
  values.raw = "twelve bytes";
  values.branches = {1, 2, 3, 4, 5, 6};
  values.regs_user = {0x66, 0x7777, 0x401000};
  values.regs_intr = {0xaa};
  values.stack = std::string(16, 's') + std::string(16, '\0');
  values.stack_used = 16;
  values.aux = "12345678";
  return values;
}

}  // namespace

TEST_CASE("a sample's fields are in their own order, not in that of their bits", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const EventShape shape = full_shape();
  const std::string bytes = RecordingBytes(order).sample(shape, full_values());
  const auto sample = decode_sample(view_of(bytes, RecordType::sample, order, 2), event_of(shape));
  REQUIRE(sample);
  CHECK(sample->id == 7);
  CHECK(sample->ip == 0x401000);
  CHECK(sample->time == 55);
  CHECK(sample->address == 0x7000);
  CHECK(sample->period == 1000);
  CHECK(sample->pid == 42);
  CHECK(sample->tid == 43);
  CHECK(sample->cpu == 5);
  CHECK(sample->mode == CpuMode::user);
  REQUIRE(sample->callchain.size() == 3);
  CHECK(sample->callchain[0] == UINT64_MAX - 511);
  CHECK(sample->callchain[2] == 0x402000);
  CHECK(sample->raw == "twelve bytes");
  CHECK(sample->user.abi == 2);
  CHECK(sample->user.find(6) == 0x66);
  CHECK(sample->user.find(7) == 0x7777);
  CHECK(sample->user.find(8) == 0x401000);
  CHECK(!sample->user.find(5));
  CHECK(!sample->user.find(64));
  CHECK(sample->user_stack == std::string(16, 's'));
  CHECK(sample->user_stack_room == 32);
  CHECK(!sample->is_stack_full());
  CHECK(sample->interrupted.find(0) == 0xaa);
}

TEST_CASE("a stack of size 0 is not followed by the number of used bytes", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const EventShape shape = full_shape();
  SampleValues values = full_values();
  values.stack.clear();
  const std::string bytes = RecordingBytes(order).sample(shape, values);
  const auto sample = decode_sample(view_of(bytes, RecordType::sample, order), event_of(shape));
  REQUIRE(sample);
  CHECK(sample->user_stack.empty());
  CHECK(sample->user_stack_room == 0);
  CHECK(sample->interrupted.find(0) == 0xaa);
}

TEST_CASE("a stack is limited to the copied bytes", "[perfdata]") {
  const EventShape shape = full_shape();
  SampleValues values = full_values();
  values.stack_used = UINT64_MAX;
  const std::string bytes = RecordingBytes().sample(shape, values);
  const auto sample =
      decode_sample(view_of(bytes, RecordType::sample, std::endian::native), event_of(shape));
  REQUIRE(sample);
  CHECK(sample->user_stack == values.stack);
  CHECK(sample->is_stack_full());
}

TEST_CASE("a kernel thread has no registers", "[perfdata]") {
  const EventShape shape = full_shape();
  SampleValues values = full_values();
  values.abi_user = 0;
  const std::string bytes = RecordingBytes().sample(shape, values);
  const auto sample =
      decode_sample(view_of(bytes, RecordType::sample, std::endian::native), event_of(shape));
  REQUIRE(sample);
  CHECK(sample->user.abi == 0);
  CHECK(!sample->user.find(6));
  CHECK(sample->user_stack.size() == 16);
  CHECK(sample->interrupted.find(0) == 0xaa);
}

TEST_CASE("a truncated sample has the fields that fit", "[perfdata]") {
  const EventShape shape = full_shape();
  const std::string bytes = RecordingBytes().sample(shape, full_values());
  for (std::size_t size = 8; size < bytes.size(); ++size) {
    CAPTURE(size);
    const std::string cut = bytes.substr(0, size);
    const auto sample =
        decode_sample(view_of(cut, RecordType::sample, std::endian::native), event_of(shape));
    REQUIRE(sample);
    CHECK(sample->ip == (size >= 24 ? 0x401000 : 0));
    CHECK(sample->time == (size >= 40 ? 55 : 99));
    CHECK(sample->callchain.size() <= 3);
    CHECK(sample->user_stack.size() <= 16);
  }
}

TEST_CASE("a sample of an event with a fixed period has that period", "[perfdata]") {
  const EventShape shape;
  const std::string bytes = RecordingBytes().sample(shape, full_values());
  const RecordView view = view_of(bytes, RecordType::sample, std::endian::native);
  RecordedEvent event = event_of(shape);
  event.period = 4000;
  CHECK(decode_sample(view, event)->period == 4000);
  event.is_frequency = true;
  CHECK(decode_sample(view, event)->period == 1);
}

TEST_CASE("a mapping contains its file's inode or build id", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const RecordingBytes bytes(order);
  const auto body = [&](const std::string& identity) {
    return bytes.bytes()
        .u32(42)
        .u32(43)
        .u64(0x401000)
        .u64(0x2000)
        .u64(0x1000)
        .raw(identity)
        .u32(5)
        .u32(2)
        .padded("/bin/cat")
        .text();
  };
  const std::string inode =
      bytes.record(10, body(bytes.bytes().u32(8).u32(1).u64(1234).u64(9).text()));
  const auto by_inode = decode_mmap(view_of(inode, RecordType::mmap2, order));
  REQUIRE(by_inode);
  CHECK(by_inode->pid == 42);
  CHECK(by_inode->time == 99);
  CHECK(by_inode->range == AddressRange{0x401000, 0x2000});
  CHECK(by_inode->offset == 0x1000);
  CHECK(by_inode->name == "/bin/cat");
  CHECK(by_inode->access == Access{.read = true, .execute = true});
  CHECK(by_inode->device_major == 8);
  CHECK(by_inode->inode == 1234);
  CHECK(by_inode->inode_generation == 9);

  const std::string id = bytes.record(
      10, body(bytes.bytes().u8(16).zeros(3).raw("0123456789abcdef").zeros(4).text()), 1 << 14);
  const auto by_id = decode_mmap(view_of(id, RecordType::mmap2, order, 1 << 14));
  REQUIRE(by_id);
  CHECK(by_id->build_id == "0123456789abcdef");
  CHECK(by_id->inode == 0);
  CHECK(by_id->name == "/bin/cat");
}

TEST_CASE("a mapping of data is not executable", "[perfdata]") {
  const RecordingBytes bytes;
  const std::string record = bytes.record(
      1, bytes.bytes().u32(1).u32(1).u64(UINT64_MAX - 1).u64(0x2000).u64(0).padded("x").text());
  const auto code = decode_mmap(view_of(record, RecordType::mmap, std::endian::native));
  const auto data = decode_mmap(view_of(record, RecordType::mmap, std::endian::native, 1 << 13));
  REQUIRE(code);
  REQUIRE(data);
  CHECK(code->access.execute);
  CHECK(!data->access.execute);
  CHECK(code->range.size == 1);  // no wrap-around
}

TEST_CASE("records too short for their type are not decoded", "[perfdata]") {
  const std::string bytes = RecordingBytes().record(1, "1234567");
  const auto of = [&](RecordType type) { return view_of(bytes, type, std::endian::native); };
  CHECK(!decode_mmap(of(RecordType::mmap)));
  CHECK(!decode_mmap(of(RecordType::mmap2)));
  CHECK(!decode_comm(of(RecordType::comm)));
  CHECK(!decode_fork(of(RecordType::fork)));
  CHECK(!decode_exit(of(RecordType::exit)));
  CHECK(!decode_lost(of(RecordType::lost)));
  CHECK(!decode_namespaces(of(RecordType::namespaces)));
  CHECK(!decode_ksymbol(of(RecordType::ksymbol)));
  CHECK(!decode_deferred(of(RecordType::callchain_deferred)));
  CHECK(!decode_comm(of(RecordType::mmap)));
}

TEST_CASE("other records are decoded in either byte order", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const RecordingBytes bytes(order);
  const std::string lost = bytes.record(2, bytes.bytes().u64(7).u64(12).text());
  CHECK(decode_lost(view_of(lost, RecordType::lost, order))->count == 12);
  const std::string samples = bytes.record(13, bytes.bytes().u64(13).text());
  CHECK(decode_lost(view_of(samples, RecordType::lost_samples, order))->count == 13);

  const std::string spaces =
      bytes.record(16, bytes.bytes().u32(42).u32(43).u64(2).u64s({1, 2, 3, 4}).text());
  const auto namespaces = decode_namespaces(view_of(spaces, RecordType::namespaces, order));
  REQUIRE(namespaces);
  REQUIRE(namespaces->namespaces.size() == 2);
  CHECK(namespaces->namespaces[1].inode == 4);
  const std::string many =
      bytes.record(16, bytes.bytes().u32(42).u32(43).u64(UINT64_MAX).u64s({1, 2}).text());
  CHECK(!decode_namespaces(view_of(many, RecordType::namespaces, order)));

  const std::string symbol = bytes.record(
      17, bytes.bytes().u64(0xffff0000).u32(64).u16(1).u16(1).padded("bpf_prog_x").text());
  const auto ksymbol = decode_ksymbol(view_of(symbol, RecordType::ksymbol, order));
  REQUIRE(ksymbol);
  CHECK(ksymbol->range == AddressRange{0xffff0000, 64});
  CHECK(ksymbol->type == 1);
  CHECK(ksymbol->unregister);
  CHECK(ksymbol->name == "bpf_prog_x");

  const std::string chain =
      bytes.record(22, bytes.bytes().u64(77).u64(2).u64s({5, 6}).u32(42).u32(43).u64(9).text());
  const auto deferred = decode_deferred(view_of(chain, RecordType::callchain_deferred, order));
  REQUIRE(deferred);
  CHECK(deferred->cookie == 77);
  CHECK(deferred->callchain[1] == 6);
  CHECK(deferred->pid == 42);
  CHECK(deferred->tid == 43);
}

}  // namespace perfmap::test::decode_test
