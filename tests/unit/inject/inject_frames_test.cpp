// SPDX-License-Identifier: MIT
// Where perf finds the frames of JIT code in the output of inject_jit().

#include <ctime>

#include "dwarf/cfi_table.hpp"
#include "support/cfi_bytes.hpp"
#include "support/injected.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::test::inject_frames_test {
namespace {

constexpr Address kArena = 0x7f0000000000;
const std::string kBody(64, '\x90');

/// A dump whose functions each have a frame with absolute addresses.
std::string dump_with_frames(const std::vector<Address>& functions) {
  DumpBytes dump;
  dump.header();
  std::uint64_t time = 20;
  for (const Address function : functions) {
    TestCie cie;
    const std::string frames = CfiBytes(cie).fde(function, kBody.size(), "\x44\x0e\x10").text();
    dump.unwinding(time, frames, 0, frames.size()).load(time, function, "f", kBody);
    ++time;
  }
  return dump.text();
}

std::string recording_of_marker(const std::string& more = "") {
  const RecordingBytes b;
  EventShape shape;
  shape.flags |= 1 << 25;
  shape.clock = CLOCK_MONOTONIC;
  Bytes body = b.bytes();
  body.u32(42).u32(42).u64(0x7000).u64(0x1000).u64(0).zeros(24).u32(5).u32(2);
  body.padded("/tmp/jit-42.dump").raw(b.trailer(shape, {.time = 1, .pid = 42, .tid = 42}));
  return b.file({shape}, b.record(10, body.text(), 2) + more);
}

/// The process's memory at an address, by the mappings and the bytes of their files.
std::string memory(const Injected& made, Address address, std::size_t size) {
  std::string found;
  const std::vector<MmapEvent> all = made.mappings();
  for (const MmapEvent& event : all) {
    if (!event.range.contains(address) || !event.name.ends_with(".so")) continue;
    const std::string file = read_file(std::string(event.name));
    found = file.substr(address - event.range.begin + event.offset, size);
  }
  return found;
}

/// The address of the header as perf computes it: the lowest mapping of the file is the first
/// segment.
Address header_address(const Injected& made) {
  Address lowest = UINT64_MAX;
  for (const MmapEvent& event : made.mappings()) {
    if (event.name.ends_with(".so")) lowest = std::min(lowest, event.range.begin);
  }
  const ElfReader elf(read_file(made.report.dumps.at(0).elf));
  const auto segments = elf.segments();
  const auto header = elf.section(".eh_frame_hdr");
  REQUIRE(!segments.empty());
  REQUIRE(header);
  CHECK(header->sh_addr == header->sh_offset);
  return lowest - (segments.front().p_vaddr & ~std::uint64_t{4095}) + header->sh_addr;
}

}  // namespace

TEST_CASE("frames of all code are found in memory, through a table", "[inject][frames]") {
  // The last functions are too far away to keep their distance in the file.
  const auto functions = GENERATE(std::vector<Address>{kArena + 0x2000, kArena, kArena + 0x400},
                                  std::vector<Address>{kArena, kArena + 0x400, kArena + 0x8000000},
                                  std::vector<Address>{kArena + 0x400, kArena, kArena - 0x8000000});
  const Injected made(recording_of_marker(), {dump_with_frames(functions)});
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].counts.frames == 3);
  CHECK(made.report.dumps[0].mappings == 4);
  const Address at = header_address(made);
  const std::string bytes = memory(made, at, 4096);
  const auto table = EhFrameHeader::read(bytes, at, kX86);
  REQUIRE(table);
  CHECK(table->size() >= 3);
  for (const Address function : functions) {
    const auto entry = table->find(function + 5);
    REQUIRE(entry);
    CHECK(entry->code == function);
    // Length, distance of the CIE, relative address of the code.
    const std::string fde = memory(made, entry->fde, 24);
    REQUIRE(fde.size() == 24);
    std::uint64_t place = 0;
    std::uint64_t size = 0;
    std::memcpy(&place, fde.data() + 8, 8);
    std::memcpy(&size, fde.data() + 16, 8);
    CHECK(entry->fde + 8 + place == function);
    CHECK(size == kBody.size());
    CHECK(made.name_at(function, 100) == "f");
  }
}

TEST_CASE("frames are not mapped over code", "[inject][frames]") {
  // In the file the second function comes after the first, which has its addresses.
  const Injected made(recording_of_marker(),
                      {dump_with_frames({kArena, kArena - 0x10040, kArena - 0x20000})});
  for (const MmapEvent& event : made.mappings()) {
    if (!event.name.ends_with(".so")) continue;
    for (const MmapEvent& other : made.mappings()) {
      if (!other.name.ends_with(".so") || other.range == event.range) continue;
      CHECK((event.range.end() <= other.range.begin || other.range.end() <= event.range.begin));
    }
  }
  for (const Address function : {kArena, kArena - 0x10040, kArena - 0x20000}) {
    CHECK(made.name_at(function + 1, 100) == "f");
  }
}

TEST_CASE("frames that one table cannot reach are only in the file", "[inject][frames]") {
  std::string bytes = dump_with_frames({kArena, kArena + 0x400});
  SECTION("code is too far apart") {
    bytes = dump_with_frames({kArena, kArena + 0x400, kArena + 0x40000000});
  }
  SECTION("code was moved too far") {
    bytes += DumpBytes().move(90, kArena, kArena + 0x80000000, kBody.size()).text();
  }
  SECTION("code was moved below the table") {
    bytes += DumpBytes().move(90, kArena, kArena - 0x40000, kBody.size()).text();
  }
  SECTION("there are many of them") {
    std::vector<Address> functions = {kArena + 0x40000000};
    for (Address i = 0; i < 400; ++i) functions.push_back(kArena + i * 0x400);
    bytes = dump_with_frames(functions);
  }
  const Injected made(recording_of_marker(), {bytes});
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].counts.frames >= 2);
  const ElfReader elf(read_file(made.report.dumps[0].elf));
  CHECK(elf.content(".eh_frame_hdr").size() >= 20);
  const auto frames = elf.section(".eh_frame");
  REQUIRE(frames);
  CHECK(frames->sh_size > 0);
  CHECK((frames->sh_flags & SHF_ALLOC) == 0);
  const auto code = elf.section(".text");
  REQUIRE(code);
  CHECK(code->sh_offset == code->sh_addr);
  CHECK(memory(made, kArena + 0x400, kBody.size()) == kBody);
  for (const MmapEvent& event : made.mappings()) {
    if (event.name.ends_with(".so")) CHECK(event.range.size == kBody.size());
  }
}

TEST_CASE("frames are not mapped over a file of the process", "[inject][frames]") {
  // Without modules any file counts as ELF.
  const RecordingBytes b;
  EventShape shape;
  shape.flags |= 1 << 25;
  shape.clock = CLOCK_MONOTONIC;
  Bytes library = b.bytes();
  library.u32(42).u32(42).u64(kArena - 0x8000).u64(0x8000).u64(0).zeros(24).u32(5).u32(2);
  library.padded("/usr/lib/libc.so.6").raw(b.trailer(shape, {.time = 2, .pid = 42, .tid = 42}));
  const Injected made(recording_of_marker(b.record(10, library.text(), 2)),
                      {dump_with_frames({kArena, kArena + 0x400})});
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].mappings == 2);
  CHECK(made.name_at(kArena + 1, 100) == "f");
}

TEST_CASE("a dump without frames has no mapping for them", "[inject][frames]") {
  DumpBytes dump;
  dump.header().load(20, kArena, "f", kBody);
  const Injected made(recording_of_marker(), {dump.text()});
  REQUIRE(made.report.dumps.size() == 1);
  CHECK(made.report.dumps[0].mappings == 1);
  const ElfReader elf(read_file(made.report.dumps[0].elf));
  CHECK(elf.content(".eh_frame_hdr").size() == 20);
  CHECK_FALSE(elf.section(".eh_frame"));
}

}  // namespace perfmap::test::inject_frames_test
