// SPDX-License-Identifier: MIT
// The name of a thread at the time of a sample.

#include <string>
#include <vector>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::test::thread_names_test {
namespace {

SampleValues of_thread(std::uint32_t tid, std::uint64_t time) {
  SampleValues values;
  values.pid = 42;
  values.tid = tid;
  values.time = time;
  values.ip = 0x1000;
  return values;
}

std::vector<std::string> comms_of(const std::string& file) {
  const auto recording = Recording::open(Input::from_text(file, "perf.data"));
  REQUIRE(recording);
  StackReader reader(*recording, {});
  std::vector<std::string> comms;
  Diagnostics problems(1);
  reader.read([&](const StackSample& sample) { comms.emplace_back(sample.comm); }, problems);
  return comms;
}

}  // namespace

TEST_CASE("a new thread has the name of its creator until it gets its own", "[stacks]") {
  const RecordingBytes bytes;
  const EventShape shape;
  const auto fork = [&](std::uint32_t tid, std::uint32_t parent_tid, std::uint64_t time) {
    const std::string body =
        bytes.bytes().u32(42).u32(42).u32(tid).u32(parent_tid).u64(time).text();
    return bytes.record(7, body + bytes.trailer(shape, of_thread(tid, time)));
  };
  const std::string data =
      bytes.comm(42, "program", shape, of_thread(42, 1)) + fork(43, 42, 2) +
      bytes.sample(shape, of_thread(43, 3)) + bytes.comm(42, "worker", shape, of_thread(43, 4)) +
      fork(44, 43, 5) + bytes.sample(shape, of_thread(44, 6)) + fork(45, 99, 7) +
      bytes.sample(shape, of_thread(45, 8)) + bytes.sample(shape, of_thread(42, 9));
  CHECK(comms_of(bytes.file({shape}, data)) ==
        std::vector<std::string>{"program", "worker", "program", "program"});
}

TEST_CASE("a thread without a name event is named by its number, as in perf", "[stacks]") {
  const RecordingBytes bytes;
  const EventShape shape;
  SampleValues idle = of_thread(0, 5);
  idle.pid = 0;
  const std::string data = bytes.sample(shape, of_thread(43, 1)) +
                           bytes.comm(42, "", shape, of_thread(43, 2)) +
                           bytes.sample(shape, of_thread(43, 3)) +
                           bytes.sample(shape, of_thread(42, 4)) + bytes.sample(shape, idle);
  CHECK(comms_of(bytes.file({shape}, data)) ==
        std::vector<std::string>{":43", ":43", ":42", "swapper"});
}

}  // namespace perfmap::test::thread_names_test
