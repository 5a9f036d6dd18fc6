// SPDX-License-Identifier: MIT
// A file that is mapped in two pieces: file offsets, names and mappings of its frames.

#include <map>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::test::file_offsets_test {
namespace {

constexpr Address kFirst = 0x10000;   // maps the file from `_start` to `with_room`
constexpr Address kSecond = 0x50000;  // maps the rest
constexpr std::uint64_t kBegin = 0x180;
constexpr std::uint64_t kCut = 0x230;
constexpr std::uint64_t kUser = static_cast<std::uint64_t>(-512);

std::string mapping(const EventShape& shape, std::uint32_t pid, AddressRange range,
                    std::uint64_t offset) {
  const RecordingBytes b;
  Bytes body = b.bytes();
  body.u32(pid).u32(pid).u64(range.begin).u64(range.size).u64(offset).zeros(24).u32(5).u32(2);
  body.padded("/tmp/tiny/shapes").raw(b.trailer(shape, {.time = 1, .pid = pid, .tid = pid}));
  return b.record(10, body.text(), 2);
}

/// Process 7 has both pieces, and process 8 has the second one at another address.
Recording recording() {
  const RecordingBytes b;
  EventShape shape;
  shape.sample_type = kIp | kTid | kTime | kCallchain;
  const auto sample = [&](std::uint32_t pid, std::vector<std::uint64_t> chain) {
    chain.insert(chain.begin(), kUser);
    return b.sample(shape,
                    {.ip = chain[1], .time = 10 + pid, .pid = pid, .tid = pid, .callchain = chain});
  };
  return recording_of(b.file(
      {shape}, mapping(shape, 7, {kFirst, kCut - kBegin}, kBegin) +
                   mapping(shape, 7, {kSecond, 0xc0}, kCut) +
                   mapping(shape, 8, {kSecond + 0x9000, 0xc0}, kCut) +
                   sample(7, {kFirst + 0x14, kFirst + 0x75, kSecond + 0x35, kSecond + 0x75}) +
                   sample(8, {kSecond + 0x9000 + 0x34, kSecond + 0x9000 + 0x75})));
}

struct Seen {
  std::string name;
  std::uint64_t offset;
  Address map_address;
  Address vaddr;
  Address mapped_at;
  std::uint64_t mapped_from;
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<Seen> frames_of(const Recording& recording) {
  ModuleCache cache;
  StackOptions options;
  options.open_module = open_below(cache, tests_dir("/wild/stacks/tiny/root"));
  StackReader reader(recording, std::move(options));
  std::vector<Seen> seen;
  Diagnostics problems(1);
  reader.read(
      [&](const StackSample& sample) {
        for (const StackFrame& frame : sample.frames) {
          const FramePlace& place = reader.table().place(frame.place);
          const FrameMapping& mapped = reader.table().mapping(place.mapping);
          seen.push_back({std::string(reader.table().function_of(frame.place).name), place.offset,
                          place.map_address, place.vaddr, mapped.range.begin, mapped.offset});
        }
      },
      problems);
  CHECK(reader.failures().empty());
  return seen;
}

}  // namespace

TEST_CASE("each piece of a file has its own offset, names and mapping", "[stacks]") {
  const std::vector<Seen> seen = frames_of(recording());
  REQUIRE(seen.size() == 6);
  CHECK(seen[0] == Seen{"leaf", 4, 0x194, 0x400194, kFirst, kBegin});
  // At the same distance from the start of its piece as the last frame.
  CHECK(seen[1] == Seen{"with_room", 0x25, 0x1f5, 0x4001f5, kFirst, kBegin});
  CHECK(seen[2] == Seen{"recursive", 5, 0x265, 0x400265, kSecond, kCut});
  CHECK(seen[3] == Seen{"run", 5, 0x2a5, 0x4002a5, kSecond, kCut});
  // The same piece in another process is the same mapping, at any address.
  CHECK(seen[4] == Seen{"recursive", 4, 0x264, 0x400264, kSecond, kCut});
  CHECK(seen[5] == Seen{"run", 5, 0x2a5, 0x4002a5, kSecond, kCut});
}

}  // namespace perfmap::test::file_offsets_test
