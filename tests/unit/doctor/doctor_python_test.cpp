// What the doctor reports about CPython's code in a recording, and which flags it proposes.

#include <ctime>

#include "support/jitdump_bytes.hpp"
#include "support/recorded_patient.hpp"

namespace perfmap::test {
namespace {

using Strings = std::vector<std::string>;
constexpr std::uint64_t kCopied = kIp | kTid | kTime | kCallchain | kStackUser;

/// python3.13 with these flags, recorded with the clock of jitdumps.
struct PythonPatient : RecordedPatient {
  explicit PythonPatient(const Strings& flags = {"-X", "perf_jit"}) {
    program = "/usr/bin/python3.13";
    command = {"perf", "record", "-k", "mono", "--call-graph", "dwarf", "--", "python3"};
    command.insert(command.end(), flags.begin(), flags.end());
    command.emplace_back("a.py");
    clock = CLOCK_MONOTONIC;
  }
};

std::string dump_of(RecordedPatient& patient, const std::string& text) {
  const std::string dump = patient.tmp() + "/jit-42.dump";
  patient.mapped = {dump};
  return RecordedPatient::write(dump, text);
}

DoctorFinding finding(const RecordingDiagnosis& diagnosis, std::string_view id) {
  const RecordingFinding* const found = find_finding(diagnosis, id);
  REQUIRE(found != nullptr);
  return found->finding;
}

std::string whole() {
  return DumpBytes().header().load_of_size(5, RecordedPatient::kCode, 0x10, "first").text();
}

}  // namespace

TEST_CASE("bytes that a forked child wrote again are not damage", "[doctor]") {
  PythonPatient patient;
  const std::string buffered =
      DumpBytes().load_of_size(6, RecordedPatient::kCode + 0x10, 0x40, "second").text() +
      DumpBytes().load_of_size(7, RecordedPatient::kCode + 0x80, 0x40, "third").text();
  const std::string all = whole() + buffered;
  dump_of(patient, all + all.substr(whole().size() - 6) +
                       DumpBytes().load_of_size(8, 0x9900, 0x40, "fourth").text());
  const RecordingDiagnosis found = patient.diagnose();
  const LookedFor& file = found.processes.at(0).looked_for.at(1);
  CHECK(file.entries == 4);
  CHECK(file.damage.empty());
  CHECK(find_finding(found, "damaged-dump") == nullptr);
}

TEST_CASE("an empty Python jitdump is reported as a lost buffer", "[doctor]") {
  PythonPatient patient;
  dump_of(patient, "");
  const RecordingDiagnosis found = patient.diagnose();
  const DoctorFinding lost = finding(found, "lost-map");
  CHECK(lost.message.find("/jit-42.dump is empty, because Python buffers it") != std::string::npos);
  CHECK(lost.message.find("os._exit()") != std::string::npos);
  CHECK(lost.message.find("the disk") == std::string::npos);
  CHECK(lost.message.find("nothing was compiled") == std::string::npos);
  CHECK(lost.message.find("ctypes.CDLL(None).fflush(None)") != std::string::npos);
  CHECK(lost.fix.empty());
  // The buffer also contained the unwinding information.
  CHECK(find_finding(found, "frame-pointers") == nullptr);
}

TEST_CASE("a Python jitdump with a truncated last record is not reported as damaged", "[doctor]") {
  PythonPatient patient;
  const std::string cut =
      DumpBytes().load_of_size(6, RecordedPatient::kCode + 0x10, 0x40, "cut").text().substr(0, 30);
  dump_of(patient, whole() + cut);
  const RecordingDiagnosis found = patient.diagnose();
  CHECK(found.processes.at(0).looked_for.at(1).damage.find("the last record is cut off, at byte") !=
        std::string::npos);
  const DoctorFinding lost = finding(found, "lost-map");
  CHECK(lost.message.starts_with("1 of 2 frames of code that Python made in process 42 (node)"));
  CHECK(lost.message.find("ends within a record, because Python buffers it") != std::string::npos);
  CHECK(find_finding(found, "damaged-dump") == nullptr);
  CHECK(find_finding(found, "unnamed-jit") == nullptr);
  // Nothing is reported if all frames have names.
  dump_of(patient,
          DumpBytes().header().load_of_size(5, RecordedPatient::kCode, 0x100, "all").text() + cut);
  CHECK(find_finding(patient.diagnose(), "damaged-dump") == nullptr);
  CHECK(find_finding(patient.diagnose(), "lost-map") == nullptr);
}

TEST_CASE("flags that Python already has are not proposed again", "[doctor]") {
  PythonPatient patient({"-X", "perf_jit"});
  patient.sample_type = kCopied;
  for (const RecordingFinding& one : patient.diagnose().findings) {
    CHECK(one.finding.fix.find("perf_jit -X perf_jit") == std::string::npos);
  }
  // No buffer was lost: the command stays unchanged.
  CHECK(finding(patient.diagnose(), "lost-map").fix ==
        "perf record -k mono --call-graph dwarf -- python3 -X perf_jit a.py");
}

TEST_CASE("callers of Python code need -X perf_jit and copied stacks", "[doctor]") {
  PythonPatient patient({"-X", "perf"});
  patient.command = {"perf", "record", "-g", "python3", "-X", "perf", "a.py"};
  RecordedPatient::write(patient.map(), "7000000 100 py::f:/a.py\n");
  CHECK(finding(patient.diagnose(), "frame-pointers").fix ==
        "perf record --call-graph dwarf,16384 -k mono -- python3 -X perf_jit -X perf a.py");
  // Python 3.12 has no -X perf_jit, and the message says so.
  patient.program = "/usr/bin/python3.12";
  const DoctorFinding older = finding(patient.diagnose(), "frame-pointers");
  CHECK(older.fix.empty());
  CHECK(older.message.find("Python 3.13 is the first") != std::string::npos);
}

TEST_CASE("for a Python that is too old no variable is proposed", "[doctor]") {
  PythonPatient patient(Strings{});
  patient.program = "/usr/bin/python3.11";
  patient.command = {"perf", "record", "-g", "./run.sh"};
  const RecordingDiagnosis found = patient.diagnose();
  const DoctorFinding old = finding(found, "too-old");
  CHECK(old.fix.empty());
  for (const RecordingFinding& one : found.findings) {
    CHECK(one.finding.fix.find("PYTHON") == std::string::npos);
  }
  patient.program = "/usr/bin/python3.12";
  CHECK(finding(patient.diagnose(), "no-map").fix ==
        "PYTHONPERFSUPPORT=1 perf record -g -- ./run.sh");
}

TEST_CASE("perf's environment reaches only the processes that perf starts", "[doctor]") {
  PythonPatient patient(Strings{});
  const auto fix = [&] { return finding(patient.diagnose(), "no-map").fix; };
  for (const char* const option : {"-a", "--all-cpus"}) {
    patient.command = {"perf", "record", "-g", option, "--", "sleep", "4"};
    CHECK(fix() == "export PYTHONPERFSUPPORT=1");
  }
  patient.command = {"perf", "record", "-g", "-p", "7", "--", "sleep", "4"};
  CHECK(fix() == "export PYTHONPERFSUPPORT=1");
  // Children of multiprocessing's "spawn" inherit a variable, but not -X perf_jit.
  patient.command = {"perf", "record", "-g", "./run.sh", "-X", "perf_jit"};
  CHECK(fix() ==
        "PYTHON_PERF_JIT_SUPPORT=1 perf record --call-graph dwarf,16384 -k mono -- ./run.sh "
        "-X perf_jit");
}

}  // namespace perfmap::test
