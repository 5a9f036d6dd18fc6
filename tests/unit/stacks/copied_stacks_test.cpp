// Samples with a copy of the stack.

#include "perfmap/profile/stacks.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test {

TEST_CASE("copied stacks that may be truncated are counted", "[stacks]") {
  const RecordingBytes b;
  EventShape shape;
  shape.sample_type |= kRegsUser | kStackUser;
  shape.regs_user = 1 << 7 | 1 << 8;  // rsp, rip
  shape.stack_user = 16;
  std::string data;
  for (const std::uint64_t used : {16, 8, 16, 8, 8}) {
    data += b.sample(shape, {.ip = 0x1000,
                             .time = 1 + data.size(),
                             .pid = 42,
                             .tid = 42,
                             .regs_user = {0x7000, 0x1000},
                             .stack = std::string(16, '\x07'),
                             .stack_used = used});
  }
  RecordingBytes::Parts parts;
  parts.features[6] = b.bytes().string("x86_64").text();
  const Recording recording = recording_of(b.file({shape}, data, parts));
  StackReader reader(recording, {});
  Diagnostics problems(1);
  reader.read([](const StackSample&) {}, problems);
  CHECK(reader.statistics().total.samples == 5);
  CHECK(reader.statistics().total.full_copies == 2);
}

}  // namespace perfmap::test
