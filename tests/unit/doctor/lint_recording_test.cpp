// SPDX-License-Identifier: MIT
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>

#include "perfmap/profile/doctor.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/scratch.hpp"

namespace perfmap::test::lint_recording_test {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr Address kCode = 0x7000000;

EventShape event(bool monotonic) {
  EventShape shape;
  if (monotonic) {
    shape.flags |= 1 << 25;
    shape.clock = CLOCK_MONOTONIC;
  }
  return shape;
}

std::string mapping(const EventShape& shape, const std::string& name, Address begin) {
  const RecordingBytes b;
  Bytes body = b.bytes();
  body.u32(42).u32(42).u64(begin).u64(0x1000).u64(0).zeros(24).u32(5).u32(2).padded(name);
  body.raw(b.trailer(shape, {.time = 10 * kSecond, .pid = 42, .tid = 42}));
  return b.record(10, body.text(), 2);
}

struct Shape {
  bool monotonic = true;
  bool marker = true;
  std::string arch = "x86_64";
};

/// Process 42 is sampled from 20 to 30 s, three times at kCode + 8 and once at kCode + 0x900.
Recording recording(const Shape& shape) {
  const RecordingBytes b;
  const EventShape e = event(shape.monotonic);
  std::string data = mapping(e, "//anon", kCode);
  if (shape.marker) data += mapping(e, "/tmp/jit-42.dump", 0x9000);
  for (const std::uint64_t time : {20, 25, 30}) {
    data += b.sample(e, {.ip = kCode + 8, .time = time * kSecond, .pid = 42, .tid = 42});
  }
  data += b.sample(e, {.ip = kCode + 0x900, .time = 26 * kSecond, .pid = 42, .tid = 42});
  RecordingBytes::Parts parts;
  parts.features[6] = b.bytes().string(shape.arch).text();
  return recording_of(b.file({e}, data, parts));
}

/// "RULE message" of each finding.
std::vector<std::string> findings(const Shape& shape, const std::string& dump) {
  Diagnostics problems(0);
  const Jitdump opened(Input::from_text(dump, "/home/jit-42.dump"));
  const LintedFile file{nullptr, &opened, &problems};
  lint_recording(recording(shape), {&file, 1});
  std::vector<std::string> found;
  for (const Diagnostic& one : problems.items()) {
    found.push_back(std::string(one.rule->id) + " " + one.message);
  }
  return found;
}

std::string code(std::uint64_t seconds, std::uint64_t size = 0x1000) {
  return DumpBytes().header().load_of_size(seconds * kSecond, kCode, size, "f").text();
}

}  // namespace

TEST_CASE("a dump that was recorded correctly has no findings", "[lint-recording]") {
  CHECK(findings({}, code(15)).empty());
}

TEST_CASE("files of processes that were not recorded are returned", "[lint-recording]") {
  Diagnostics problems(0);
  const Map own(Input::from_text("1 1 f\n", "/x/perf-42.map"));
  const Map other(Input::from_text("1 1 f\n", "/x/perf-43.map"));
  const Map nameless(Input::from_text("1 1 f\n", "map"));
  const Jitdump mapped(Input::from_text(code(15), "/home/jit-42.dump"));
  const std::vector<LintedFile> files = {{&own, nullptr, &problems},
                                         {&other, nullptr, &problems},
                                         {nullptr, &mapped, &problems},
                                         {&nameless, nullptr, &problems}};
  CHECK(lint_recording(recording({}), files) == std::vector<std::size_t>{1, 3});
  CHECK(lint_recording(recording({}), {}).empty());
}

TEST_CASE("JD302: times that do not overlap those of the recording are reported",
          "[lint-recording]") {
  const auto other = findings({.monotonic = false}, code(15));
  REQUIRE(other.size() == 1);
  CHECK(other[0] ==
        "JD302 the recording has another clock (record with -k mono): code was loaded from "
        "15.000 s to 15.000 s, samples are from 20.000 s to 30.000 s");
  CHECK(findings({}, code(100))
            .at(0)
            .starts_with("JD302 the times of the dump and of the recording do not match"));
  CHECK(findings({}, code(5))
            .at(0)
            .starts_with("JD302 the times of the dump and of the recording do not match"));
  CHECK(findings({.marker = false}, code(5)).at(0).starts_with("JD110"));
  const std::string ticks =
      DumpBytes().header({.flags = 1}).load_of_size(5, kCode, 0x1000, "f").text();
  CHECK(findings({}, ticks).at(0).starts_with("JD302 times are ticks"));
}

TEST_CASE("code at time 0 is not reported as JD302", "[lint-recording]") {
  const auto empty = findings({}, DumpBytes().header().text());
  CHECK(empty.size() == 1);
  CHECK(empty.at(0).starts_with("XF004"));
  for (const std::string& one : findings({}, code(0))) CHECK_FALSE(one.starts_with("JD302"));
}

TEST_CASE("JD107: code of another machine than the recording's is reported", "[lint-recording]") {
  CHECK(findings({.arch = "aarch64"}, code(15)) ==
        std::vector<std::string>{"JD107 machine 62, but the recording was made on aarch64"});
  CHECK(findings({.arch = "pdp11"}, code(15)).empty());
}

TEST_CASE("JD110: a recorded process that did not map its dump is reported", "[lint-recording]") {
  CHECK(findings({.marker = false}, code(15)) ==
        std::vector<std::string>{
            "JD110 the recording has process 42, but this process did not map the dump"});
}

TEST_CASE("XF004: samples in unnamed JIT memory are reported", "[lint-recording]") {
  CHECK(findings({}, code(15, 0x100)) ==
        std::vector<std::string>{
            "XF004 1 of 4 samples in code of the runtime of process 42 have no name (25 %), "
            "most of them, 1, in the page at 0x7000000"});
}

TEST_CASE("XF005: a map older than the recording is reported", "[lint-recording]") {
  const Scratch scratch;
  const std::string path = scratch.write("perf-42.map", "7000000 1000 f\n");
  const RecordingBytes b;
  const EventShape e = event(true);
  const std::string data = mapping(e, "//anon", kCode) +
                           b.sample(e, {.ip = kCode, .time = 20 * kSecond, .pid = 42, .tid = 42});
  RecordingBytes::Parts parts;
  // The same moment by both clocks: wall-clock time 1000 s is 10 s in the recording.
  parts.features[29] = b.bytes().u32(1).u32(1).u64(1000 * kSecond).u64(10 * kSecond).text();
  const Recording opened = recording_of(b.file({e}, data, parts));
  for (const time_t changed : {1000, 1010, 1020}) {
    CAPTURE(changed);
    const timespec times[2] = {{changed, 0}, {changed, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    const Map map(*Input::open(path));
    Diagnostics problems(0);
    const LintedFile file{&map, nullptr, &problems};
    lint_recording(opened, {&file, 1});
    CHECK(problems.total() == (changed < 1010 ? 1 : 0));
    if (problems.total() != 0) {
      CHECK(problems.items()[0].rule->id == "XF005");
      CHECK(problems.items()[0].message.starts_with("last changed 10.000 s before"));
    }
  }
}

}  // namespace perfmap::test::lint_recording_test
