// SPDX-License-Identifier: MIT
#include <ctime>
#include <map>

#include "perfmap/profile/module.hpp"
#include "support/elf_bytes.hpp"
#include "support/injected.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::test::inject_test {
namespace {

EventShape monotonic() {
  EventShape shape;
  shape.flags |= 1 << 25;
  shape.clock = CLOCK_MONOTONIC;
  return shape;
}

std::string mmap_record(const RecordingBytes& b, const EventShape& shape, std::uint64_t time,
                        AddressRange range, const std::string& name) {
  Bytes body = b.bytes();
  body.u32(42).u32(42).u64(range.begin).u64(range.size).u64(0).zeros(24).u32(5).u32(2);
  body.padded(name).raw(b.trailer(shape, {.time = time, .pid = 42, .tid = 42}));
  return b.record(10, body.text(), 2);
}

std::string marker(const RecordingBytes& b, const EventShape& shape) {
  return mmap_record(b, shape, 1, {0x7000, 0x1000}, "/tmp/jit-42.dump");
}

}  // namespace

TEST_CASE("code that replaces other code is mapped from its time on", "[inject]") {
  const auto order = GENERATE(std::endian::little, std::endian::big);
  const RecordingBytes b(order);
  const EventShape shape = monotonic();
  DumpBytes dump(order);
  dump.header().load(20, 0x4000, "first", "abcdefgh", 1).load(40, 0x4000, "second", "ijkl", 2);
  dump.load(30, 0x4008, "neighbour", "mnop", 3).move(50, 0x4008, 0x5000, 4, 3);
  const Injected made(b.file({shape}, marker(b, shape)), {dump.text()});

  CHECK(made.name_at(0x4001, 19).empty());
  CHECK(made.name_at(0x4001, 20) == "first");
  CHECK(made.name_at(0x4001, 40) == "second");
  CHECK(made.name_at(0x4005, 41) == "first");
  CHECK(made.name_at(0x4009, 49) == "neighbour");
  CHECK(made.name_at(0x4009, 50) == "//anon");
  CHECK(made.name_at(0x5001, 49).empty());
  CHECK(made.name_at(0x5001, 50) == "neighbour");
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].is_timed);
  CHECK(made.report.dumps[0].counts.functions == 3);
  CHECK(made.report.dumps[0].mappings == 5);
  CHECK(made.contents.facts.is_swapped == (order != std::endian::native));
}

TEST_CASE("a child that maps its parent's code again does not lose it", "[inject][fork]") {
  const RecordingBytes b;
  const EventShape shape = monotonic();
  const auto anonymous = [&](std::uint64_t time, std::uint64_t begin) {
    Bytes body = b.bytes();
    body.u32(43).u32(43).u64(begin).u64(0x1000).u64(0).zeros(24).u32(5).u32(2).padded("//anon");
    return b.record(10, body.raw(b.trailer(shape, {.time = time, .pid = 43, .tid = 43})).text(), 2);
  };
  const auto fork = [&](std::uint64_t time) {
    Bytes body = b.bytes();
    body.u32(43).u32(42).u32(43).u32(42).u64(time);
    return b.record(7, body.raw(b.trailer(shape, {.time = time, .pid = 43, .tid = 43})).text());
  };
  const std::string data = marker(b, shape) + fork(30) + anonymous(31, 0x4000) +
                           anonymous(32, 0x6000) + fork(33) + anonymous(60, 0x6000);
  DumpBytes dump;
  dump.header().load(20, 0x4000, "before the fork", "abcdefgh", 1);
  dump.load(50, 0x6000, "after it", "ijkl", 2);
  const Injected made(b.file({shape}, data), {dump.text()});
  CHECK(made.report.hidden == 1);
  std::vector<Address> kept;
  for (const MmapEvent& event : made.mappings()) {
    if (event.pid == 43) kept.push_back(event.range.begin);
  }
  CHECK(kept == std::vector<Address>{0x6000, 0x6000});
}

TEST_CASE("the file contains the code's bytes at the mapped offsets", "[inject]") {
  const RecordingBytes b;
  DumpBytes dump;
  dump.header({.elf_mach = 0, .flags = 0x10}).load(20, 0x4010, "first", "abcdefgh", 1);
  dump.load(40, 0x4010, "second", "ijkl", 2).load_of_size(40, 0x9000, 64, "no bytes", 3);
  const Injected made(b.file({monotonic()}, marker(b, monotonic())), {dump.text()});
  const std::vector<MmapEvent> all = made.mappings();
  REQUIRE(all.size() == 4);
  const std::string elf = read_file(std::string(all[1].name));
  CHECK(all[1].name == made.scratch / "out.jitted-42.so");
  CHECK(elf.substr(all[1].offset, 8) == "abcdefgh");
  CHECK(elf.substr(all[2].offset, 4) == "ijkl");
  CHECK(made.name_at(0x9001, 50) == "no bytes");
  CHECK(made.report.dumps[0].counts.without_code == 1);
  CHECK(ElfReader(elf).header().e_type == ET_DYN);
}

TEST_CASE("neighbours of moved code keep their mappings", "[inject]") {
  const RecordingBytes b;
  DumpBytes dump;
  dump.header().load(20, 0x4000, "before", "abcd", 1).load(20, 0x4004, "moved", "efgh", 2);
  dump.load(20, 0x4008, "behind", "ijkl", 3).move(50, 0x4004, 0x5000, 4, 2);
  const Injected made(b.file({monotonic()}, marker(b, monotonic())), {dump.text()});
  CHECK(made.name_at(0x4004, 49) == "moved");
  CHECK(made.name_at(0x4004, 50) == "//anon");
  CHECK(made.name_at(0x4007, 50) == "//anon");
  CHECK(made.name_at(0x4003, 50) == "before");
  CHECK(made.name_at(0x4008, 50) == "behind");
  CHECK(made.name_at(0x5000, 50) == "moved");
}

TEST_CASE("features of any number stay in the recording", "[inject]") {
  const RecordingBytes b;
  RecordingBytes::Parts parts;
  for (const unsigned number : {3U, 31U, 32U, 63U, 64U, 127U, 255U}) {
    parts.features[number] = b.bytes().string("feature " + std::to_string(number)).text();
  }
  const std::string before = b.file({monotonic()}, marker(b, monotonic()), parts);
  const Injected made(before, {DumpBytes().header().load(20, 0x4000, "f", "abcd").text()});
  constexpr std::size_t kBitmapAt = 72;
  constexpr std::size_t kBitmapSize = 32;
  CHECK(made.bytes.substr(kBitmapAt, kBitmapSize) == before.substr(kBitmapAt, kBitmapSize));
  for (const auto& [number, bytes] : parts.features) {
    CAPTURE(number);
    CHECK(made.bytes.find(bytes) != std::string::npos);
  }
}

TEST_CASE("functions around an overlapping one keep their distance in the file", "[inject]") {
  const RecordingBytes b;
  DumpBytes dump;
  dump.header().load(20, 0x4000, "first", "abcdefghijklmnop", 1);
  dump.load(30, 0x4008, "overlaps", "0123456789abcdef", 2).load(40, 0x4018, "last", "ijkl", 3);
  const Injected made(b.file({monotonic()}, marker(b, monotonic())), {dump.text()});
  std::map<Address, std::uint64_t> offsets;
  for (const MmapEvent& event : made.mappings()) offsets[event.range.begin] = event.offset;
  REQUIRE(offsets.contains(0x4000));
  REQUIRE(offsets.contains(0x4018));
  CHECK(offsets[0x4018] - offsets[0x4000] == 0x18);
  CHECK(made.name_at(0x4009, 35) == "overlaps");
}

TEST_CASE("a later anonymous mapping does not hide existing code", "[inject]") {
  const RecordingBytes b;
  const EventShape shape = monotonic();
  DumpBytes dump;
  dump.header().load(20, 0x4000, "first", "abcdefgh", 1);
  const std::string data = marker(b, shape) +
                           mmap_record(b, shape, 10, {0x4000, 0x1000}, "//anon") +
                           mmap_record(b, shape, 30, {0x4000, 0x1000}, "//anon") +
                           mmap_record(b, shape, 31, {0x8000, 0x1000}, "//anon") +
                           mmap_record(b, shape, 32, {0x4000, 0x1000}, "/memfd:jit (deleted)");
  const Injected made(b.file({shape}, data), {dump.text()});
  CHECK(made.report.hidden == 2);
  CHECK(made.name_at(0x4001, 15) == "//anon");
  CHECK(made.name_at(0x4001, 35) == "first");
  CHECK(made.name_at(0x8001, 35) == "//anon");
}

TEST_CASE("code that has the same time as another event comes first", "[inject]") {
  const RecordingBytes b;
  const EventShape shape = monotonic();
  DumpBytes dump;
  dump.header().load(20, 0x4000, "first", "abcdefgh", 1);
  const std::string data = marker(b, shape) +
                           mmap_record(b, shape, 20, {0x4000, 0x1000}, "//anon") +
                           b.sample(shape, {.ip = 0x4001, .time = 20, .pid = 42, .tid = 42});
  const Injected made(b.file({shape}, data), {dump.text()});
  CHECK(made.report.hidden == 1);
  REQUIRE(made.contents.records.size() == 3);
  CHECK(decode_mmap(made.contents.records[1].borrowed())->range == AddressRange{0x4000, 8});
  CHECK(made.contents.records[2].view.type == RecordType::sample);
}

TEST_CASE("code of a dump inside an ELF mapping is left out", "[inject]") {
  const RecordingBytes b;
  const EventShape shape = monotonic();
  const bool is_elf = GENERATE(true, false);
  CAPTURE(is_elf);
  DumpBytes dump;
  dump.header().load(20, 0x4800, "builtin", "abcdefgh", 1);
  dump.load(21, 0x3ffc, "up to it", "ijklmnop", 2).load(22, 0x5000, "after it", "qrst", 3);
  dump.load(23, 0x4000, "at its begin", "efgh", 5);
  dump.move(25, 0x4800, 0x4900, 8, 1).load(40, 0x4800, "later", "uvwx", 4);
  const std::string data = marker(b, shape) +
                           mmap_record(b, shape, 5, {0x4000, 0x1000}, "/usr/bin/node") +
                           mmap_record(b, shape, 30, {0x4000, 0x1000}, "//anon");
  int asked = 0;
  const auto no_elf = [&](const Region& region,
                          const ProcSource*) -> Result<std::shared_ptr<const Module>> {
    if (region.file->name == "/usr/bin/node") ++asked;
    return Failure(Error::bad_format("not an ELF file"));
  };
  const Injected made(b.file({shape}, data), {dump.text()}, false,
                      is_elf ? ProcessTracker::OpenModule() : no_elf);
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].in_elf_files == (is_elf ? 3 : 0));
  CHECK(made.report.dumps[0].mappings == (is_elf ? 3 : 7));
  CHECK(made.name_at(0x4801, 20) == (is_elf ? "/usr/bin/node" : "builtin"));
  CHECK(made.name_at(0x4901, 26) == (is_elf ? "/usr/bin/node" : "builtin"));
  CHECK(made.name_at(0x3ffd, 22) == "up to it");
  CHECK(made.name_at(0x4001, 22) == (is_elf ? "/usr/bin/node" : "up to it"));
  CHECK(made.name_at(0x5001, 22) == "after it");
  CHECK(made.name_at(0x4801, 40) == "later");
  CHECK(asked == (is_elf ? 0 : 1));
}

TEST_CASE("code where an ELF file has no symbol is mapped", "[inject]") {
  const RecordingBytes b;
  const EventShape shape = monotonic();
  ElfBytes elf;
  const std::string bytes = elf.symbols({{"symbol", 0x1000, 0x100}}).text();
  const auto module = Module::open(Input::from_text(bytes, "libnode.so"));
  REQUIRE(module);
  const Address text = 0x4000 + (*module)->find_section(".text")->offset;
  DumpBytes dump;
  dump.header().load(20, text, "has a symbol", "abcdefgh", 1);
  dump.load(21, text + 0x800, "has none", "ijklmnop", 2);
  const std::string data =
      marker(b, shape) + mmap_record(b, shape, 5, {0x4000, 0x3000}, "/usr/lib/libnode");
  const auto open = [&](const Region& region,
                        const ProcSource*) -> Result<std::shared_ptr<const Module>> {
    if (region.file->name == "/usr/lib/libnode") return module;
    return Failure(Error::bad_format("not an ELF file"));
  };
  const Injected made(b.file({shape}, data), {dump.text()}, false, open);
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].in_elf_files == 1);
  CHECK(made.name_at(text + 1, 25) == "/usr/lib/libnode");
  CHECK(made.name_at(text + 0x801, 25) == "has none");
}

TEST_CASE("without the dump's clock all code is mapped at its marker", "[inject]") {
  const RecordingBytes b;
  DumpBytes dump;
  dump.header().load(7000, 0x4000, "first", "abcdefgh", 1).load(9000, 0x4000, "second", "ijkl", 2);
  const Injected made(b.file({EventShape()}, marker(b, EventShape())), {dump.text()});
  REQUIRE(made.report.dumps.size() == 1);
  CHECK_FALSE(made.report.dumps[0].is_timed);
  CHECK(made.name_at(0x4001, 1) == "second");
  CHECK(made.name_at(0x4005, 1) == "first");
}

TEST_CASE("a dump that cannot be read is reported, and the recording is unchanged", "[inject]") {
  const RecordingBytes b;
  const std::string before = b.file({monotonic()}, marker(b, monotonic()));
  const Injected made(before, {});
  CHECK(made.report.dumps.empty());
  REQUIRE(made.report.failures.size() == 1);
  CHECK(made.report.failures[0].message() == "no /tmp/jit-42.dump");
  CHECK(made.contents.records.size() == 1);
}

}  // namespace perfmap::test::inject_test
