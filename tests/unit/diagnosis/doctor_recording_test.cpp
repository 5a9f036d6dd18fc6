#include "perfmap/doctor_recording.hpp"

#include <algorithm>

#include "diagnosis/recording_findings.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/written.hpp"

namespace perfmap::test {
namespace {

constexpr Address kCode = 0x7000000;

struct Shape {
  std::uint64_t sample_type = kIp | kTid | kTime | kCallchain;
  std::string program = "/usr/bin/node";
  bool marker = false;
  std::uint64_t lost = 0;
};

std::string mapping(const EventShape& shape, const std::string& name, Address begin) {
  const RecordingBytes b;
  Bytes body = b.bytes();
  body.u32(42).u32(42).u64(begin).u64(0x1000).u64(0).zeros(24).u32(5).u32(2).padded(name);
  body.raw(b.trailer(shape, {.time = 10, .pid = 42, .tid = 42}));
  return b.record(10, body.text(), 2);
}

RecordingDiagnosis diagnosis_of(const Shape& shape) {
  const RecordingBytes b;
  EventShape event;
  event.sample_type = shape.sample_type;
  std::string data = mapping(event, shape.program, 0x400000) + mapping(event, "//anon", kCode);
  if (shape.marker) data += mapping(event, "/tmp/jit-42.dump", 0x9000);
  if (shape.lost != 0) {
    Bytes body = b.bytes();
    body.u64(0).u64(shape.lost).raw(b.trailer(event, {.time = 15, .pid = 42, .tid = 42}));
    data += b.record(2, body.text());
  }
  constexpr std::uint64_t kUser = static_cast<std::uint64_t>(-512);
  data += b.sample(event, {.ip = kCode + 8,
                           .time = 20,
                           .pid = 42,
                           .tid = 42,
                           .callchain = {kUser, kCode + 8, kCode + 0x20}});
  Diagnostics problems(1);
  return diagnose_recording(recording_of(b.file({event}, data)), {}, problems);
}

const RecordingFinding* find(const RecordingDiagnosis& diagnosis, std::string_view id) {
  const auto found =
      std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [&](const RecordingFinding& one) { return one.finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("code that nothing names is told with its runtime and the flag", "[doctor]") {
  const RecordingDiagnosis diagnosis = diagnosis_of({});
  REQUIRE(diagnosis.processes.size() == 1);
  CHECK(diagnosis.processes[0].runtime == HostRuntime::node);
  CHECK(diagnosis.processes[0].jit_frames == 2);
  CHECK(diagnosis.processes[0].unnamed_jit == 2);
  const RecordingFinding* const found = find(diagnosis, "unnamed-jit");
  REQUIRE(found != nullptr);
  CHECK(found->pid == 42);
  CHECK(found->finding.severity == Severity::warning);
  CHECK(found->finding.message.find("2 of 2 frames of code that Node.js made") == 0);
  CHECK(found->finding.fix.find("--perf-basic-prof") != std::string::npos);
  CHECK(diagnosis.misses_names());
}

TEST_CASE("the runtime of a recorded process is that of its program or libraries", "[doctor]") {
  CHECK(diagnosis_of({.program = "/opt/jdk/lib/server/libjvm.so"}).processes[0].runtime ==
        HostRuntime::jvm);
  CHECK(diagnosis_of({.program = "/usr/bin/python3.12"}).processes[0].runtime ==
        HostRuntime::cpython);
  CHECK(diagnosis_of({.program = "/usr/bin/cat"}).processes[0].runtime == HostRuntime::unknown);
}

TEST_CASE("samples without stacks want -g", "[doctor]") {
  const RecordingDiagnosis diagnosis = diagnosis_of({.sample_type = kIp | kTid | kTime});
  REQUIRE(find(diagnosis, "no-stacks") != nullptr);
  CHECK(find(diagnosis, "no-stacks")->finding.fix == "perf record -g ...");
  CHECK(find(diagnosis_of({}), "no-stacks") == nullptr);
}

TEST_CASE("a jitdump and another clock than its own are an error", "[doctor]") {
  const RecordingDiagnosis diagnosis = diagnosis_of({.marker = true});
  REQUIRE(find(diagnosis, "clock") != nullptr);
  CHECK(find(diagnosis, "clock")->finding.severity == Severity::error);
  CHECK(find(diagnosis, "clock")->finding.fix == "perf record -k mono ...");
  CHECK(find(diagnosis_of({}), "clock") == nullptr);
}

TEST_CASE("lost events are told", "[doctor]") {
  REQUIRE(find(diagnosis_of({.lost = 7}), "lost-events") != nullptr);
  CHECK(find(diagnosis_of({}), "lost-events") == nullptr);
}

TEST_CASE("files of other users are one finding a process, whose fix is that of its code",
          "[doctor]") {
  RecordingDiagnosis diagnosis = diagnosis_of({});
  const std::vector<ForeignFile> files = {
      {42, "node", "/tmp/perf-42.map", 1001, "it has 2 links"},
      {42, "node", "/tmp/jit-42.dump", 1001, "its header names process 43"},
      {43, "no\x1b[31m", "/tmp/perf-43.map", 1002, "it has 2 links"}};
  add_foreign_findings(files, diagnosis);
  const RecordingFinding* const found = find(diagnosis, "foreign-owner");
  REQUIRE(found != nullptr);
  CHECK(found->pid == 42);
  CHECK(found->finding.severity == Severity::warning);
  CHECK(found->finding.message ==
        "process 42 (node): /tmp/perf-42.map belongs to user 1001 and was not used: it has 2 "
        "links; /tmp/jit-42.dump belongs to user 1001 and was not used: its header names process "
        "43");
  CHECK(found->finding.fix == "perfmap stacks --any-owner perf.data");
  CHECK(find(diagnosis, "unnamed-jit")->finding.fix == found->finding.fix);
  CHECK(diagnosis.findings.back().pid == 43);
  CHECK(diagnosis.findings.back().finding.message.find('\x1b') == std::string::npos);
}

TEST_CASE("a size for copies of stacks is one that perf takes, and larger", "[doctor]") {
  CHECK(mending_stack_size(8192, 1, 100) == 16384);
  CHECK(mending_stack_size(8192, 90, 100) == 32768);
  CHECK(mending_stack_size(32768, 90, 100) == 65528);
  CHECK(mending_stack_size(65528, 90, 100) == 0);
  CHECK(mending_stack_size(1000, 1, 100) == 8192);
}

TEST_CASE("bytes of a recording are made visible", "[doctor]") {
  const std::string text = written([](OutputFile& out) {
    RecordingDiagnosis diagnosis;
    diagnosis.path = "a\x1b[31m.data";
    diagnosis.command_line = {"perf", "\n"};
    write_recording_doctor_text(out, diagnosis);
  });
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\\x1b") != std::string::npos);
  CHECK(text.find("nothing is wrong") != std::string::npos);
}

}  // namespace perfmap::test
