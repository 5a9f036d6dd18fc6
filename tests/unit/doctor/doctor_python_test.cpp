// SPDX-License-Identifier: MIT
// What the doctor reports about CPython's code in a recording, and which flags it proposes.

#include <ctime>

#include "support/jitdump_bytes.hpp"
#include "support/recorded_fake_process.hpp"

namespace perfmap::test::doctor_python_test {
namespace {

using Strings = std::vector<std::string>;
constexpr std::uint64_t kCopied = kIp | kTid | kTime | kCallchain | kStackUser;

/// python3.13 with these flags, recorded with the clock of jitdumps.
struct FakePython : RecordedFakeProcess {
  explicit FakePython(const Strings& flags = {"-X", "perf_jit"}) {
    program = "/usr/bin/python3.13";
    command = {"perf", "record", "-k", "mono", "--call-graph", "dwarf", "--", "python3"};
    command.insert(command.end(), flags.begin(), flags.end());
    command.emplace_back("a.py");
    clock = CLOCK_MONOTONIC;
  }
};

std::string dump_of(RecordedFakeProcess& process, const std::string& text) {
  const std::string dump = process.tmp() + "/jit-42.dump";
  process.mapped = {dump};
  return RecordedFakeProcess::write(dump, text);
}

DoctorFinding finding(const RecordingDiagnosis& diagnosis, std::string_view id) {
  const RecordingFinding* const found = find_finding(diagnosis, id);
  REQUIRE(found != nullptr);
  return found->finding;
}

std::string whole() {
  return DumpBytes().header().load_of_size(5, RecordedFakeProcess::kCode, 0x10, "first").text();
}

}  // namespace

TEST_CASE("bytes that a forked child wrote again are not damage", "[doctor]") {
  FakePython process;
  const std::string buffered =
      DumpBytes().load_of_size(6, RecordedFakeProcess::kCode + 0x10, 0x40, "second").text() +
      DumpBytes().load_of_size(7, RecordedFakeProcess::kCode + 0x80, 0x40, "third").text();
  const std::string all = whole() + buffered;
  dump_of(process, all + all.substr(whole().size() - 6) +
                       DumpBytes().load_of_size(8, 0x9900, 0x40, "fourth").text());
  const RecordingDiagnosis found = process.diagnose();
  const LookedFor& file = found.processes.at(0).looked_for.at(1);
  CHECK(file.entries == 4);
  CHECK(file.damage.empty());
  CHECK(find_finding(found, "damaged-dump") == nullptr);
}

TEST_CASE("an empty Python jitdump is reported as a lost buffer", "[doctor]") {
  FakePython process;
  dump_of(process, "");
  const RecordingDiagnosis found = process.diagnose();
  const DoctorFinding lost = finding(found, "lost-map");
  CHECK(lost.message.find("/jit-42.dump is empty, because Python buffers the jitdump") !=
        std::string::npos);
  CHECK(lost.message.find("os._exit()") != std::string::npos);
  CHECK(lost.message.find("the disk") == std::string::npos);
  CHECK(lost.message.find("nothing was compiled") == std::string::npos);
  CHECK(lost.message.find("ctypes.CDLL(None).fflush(None)") != std::string::npos);
  CHECK(lost.fix.empty());
  // The buffer also contained the unwinding information.
  CHECK(find_finding(found, "frame-pointers") == nullptr);
}

TEST_CASE("a Python jitdump with a truncated last record is not reported as damaged", "[doctor]") {
  FakePython process;
  const std::string cut = DumpBytes()
                              .load_of_size(6, RecordedFakeProcess::kCode + 0x10, 0x40, "cut")
                              .text()
                              .substr(0, 30);
  dump_of(process, whole() + cut);
  const RecordingDiagnosis found = process.diagnose();
  CHECK(found.processes.at(0).looked_for.at(1).damage.find(
            "the last record is truncated, at byte") != std::string::npos);
  const DoctorFinding lost = finding(found, "lost-map");
  CHECK(
      lost.message.starts_with("1 of 2 frames of code that Python generated in process 42 (node)"));
  CHECK(lost.message.find("ends within a record, because Python buffers the jitdump") !=
        std::string::npos);
  CHECK(find_finding(found, "damaged-dump") == nullptr);
  CHECK(find_finding(found, "unnamed-jit") == nullptr);
  // Nothing is reported if all frames have names.
  dump_of(
      process,
      DumpBytes().header().load_of_size(5, RecordedFakeProcess::kCode, 0x100, "all").text() + cut);
  CHECK(find_finding(process.diagnose(), "damaged-dump") == nullptr);
  CHECK(find_finding(process.diagnose(), "lost-map") == nullptr);
}

TEST_CASE("flags that Python already has are not proposed again", "[doctor]") {
  FakePython process({"-X", "perf_jit"});
  process.sample_type = kCopied;
  for (const RecordingFinding& one : process.diagnose().findings) {
    CHECK(one.finding.fix.find("perf_jit -X perf_jit") == std::string::npos);
  }
  // No buffer was lost: the command stays unchanged.
  CHECK(finding(process.diagnose(), "lost-map").fix ==
        "perf record -k mono --call-graph dwarf -- python3 -X perf_jit a.py");
}

TEST_CASE("callers of Python code need -X perf_jit and copied stacks", "[doctor]") {
  FakePython process({"-X", "perf"});
  process.command = {"perf", "record", "-g", "python3", "-X", "perf", "a.py"};
  RecordedFakeProcess::write(process.map(), "7000000 100 py::f:/a.py\n");
  CHECK(finding(process.diagnose(), "frame-pointers").fix ==
        "perf record --call-graph dwarf,32768 -k mono -- python3 -X perf_jit -X perf a.py");
  // Python 3.12 has no -X perf_jit, and the message says so.
  process.program = "/usr/bin/python3.12";
  const DoctorFinding older = finding(process.diagnose(), "frame-pointers");
  CHECK(older.fix.empty());
  CHECK(older.message.find("Python 3.13 is the first") != std::string::npos);
}

TEST_CASE("for a Python that is too old no variable is proposed", "[doctor]") {
  FakePython process(Strings{});
  process.program = "/usr/bin/python3.11";
  process.command = {"perf", "record", "-g", "./run.sh"};
  const RecordingDiagnosis found = process.diagnose();
  const DoctorFinding old = finding(found, "too-old");
  CHECK(old.fix.empty());
  for (const RecordingFinding& one : found.findings) {
    CHECK(one.finding.fix.find("PYTHON") == std::string::npos);
  }
  process.program = "/usr/bin/python3.12";
  CHECK(finding(process.diagnose(), "no-map").fix ==
        "PYTHONPERFSUPPORT=1 perf record -g -- ./run.sh");
}

TEST_CASE("perf's environment reaches only the processes that perf starts", "[doctor]") {
  FakePython process(Strings{});
  const auto fix = [&] { return finding(process.diagnose(), "no-map").fix; };
  for (const char* const option : {"-a", "--all-cpus"}) {
    process.command = {"perf", "record", "-g", option, "--", "sleep", "4"};
    CHECK(fix() == "export PYTHONPERFSUPPORT=1");
  }
  process.command = {"perf", "record", "-g", "-p", "7", "--", "sleep", "4"};
  CHECK(fix() == "export PYTHONPERFSUPPORT=1");
  // Children of multiprocessing's "spawn" inherit a variable, but not -X perf_jit.
  process.command = {"perf", "record", "-g", "./run.sh", "-X", "perf_jit"};
  CHECK(fix() ==
        "PYTHON_PERF_JIT_SUPPORT=1 perf record --call-graph dwarf,32768 -k mono -- ./run.sh "
        "-X perf_jit");
}

}  // namespace perfmap::test::doctor_python_test
