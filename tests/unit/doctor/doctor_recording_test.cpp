// SPDX-License-Identifier: MIT
#include "doctor/recording.hpp"
#include "perfmap/profile/doctor.hpp"
#include "support/catch.hpp"
#include "support/recorded_fake_process.hpp"
#include "support/written.hpp"

namespace perfmap::test::doctor_recording_test {
namespace {

std::string fix_of(const RecordingDiagnosis& diagnosis, std::string_view id) {
  const RecordingFinding* const found = find_finding(diagnosis, id);
  return found == nullptr ? "none" : found->finding.fix;
}

}  // namespace

TEST_CASE("the runtime of a recorded process is detected by its program or libraries", "[doctor]") {
  const auto runtime_of = [](const std::string& program) {
    RecordedFakeProcess process;
    process.program = program;
    return process.diagnose().processes.at(0).runtime;
  };
  CHECK(runtime_of("/opt/jdk/lib/server/libjvm.so") == Runtime::hotspot);
  CHECK(runtime_of("/usr/bin/python3.12") == Runtime::cpython);
  CHECK(runtime_of("/usr/bin/cat") == Runtime::unknown);
}

TEST_CASE("for samples without stacks the fix copies stacks", "[doctor]") {
  RecordedFakeProcess process;
  CHECK(find_finding(process.diagnose(), "no-stacks") == nullptr);
  CHECK(find_finding(process.diagnose(), "frame-pointers") != nullptr);
  process.sample_type = kIp | kTid | kTime;
  process.command = {"perf", "record", "-F", "99", "./x"};
  const RecordingDiagnosis found = process.diagnose();
  REQUIRE(find_finding(found, "no-stacks") != nullptr);
  CHECK(find_finding(found, "frame-pointers") == nullptr);
  CHECK(fix_of(found, "no-stacks")
            .ends_with("perf record -F 99 --call-graph dwarf,32768 -k mono -- ./x"));
}

TEST_CASE("callchains with addresses outside of code show that frame pointers are missing",
          "[doctor]") {
  RecordedFakeProcess process;
  CHECK(find_finding(process.diagnose(), "no-frame-pointers") == nullptr);
  process.caller = 0xdead0000;
  const RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "no-frame-pointers");
  REQUIRE(one != nullptr);
  CHECK(one->finding.severity == Severity::warning);
  CHECK(one->finding.message ==
        "1 of 1 stacks (100 %) contain addresses that are not code: the kernel followed frame "
        "pointers (-g), and the program has none");
  CHECK(one->finding.fix.find(" --call-graph dwarf,32768 -k mono ") != std::string::npos);
}

TEST_CASE("a fix keeps the names that the environment had turned on", "[doctor]") {
  RecordedFakeProcess process;
  RecordedFakeProcess::write(process.map(), "7000000 100 hot\n");
  process.lost = 7;
  CHECK(fix_of(process.diagnose(), "lost-events") ==
        "perf record -g -m 16M -- node --perf-basic-prof "
        "--interpreted-frames-native-stack a.js");
}

TEST_CASE("a jitdump and a clock other than CLOCK_MONOTONIC are an error", "[doctor]") {
  RecordedFakeProcess process;
  CHECK(find_finding(process.diagnose(), "clock") == nullptr);
  process.mapped = {"/tmp/none/jit-42.dump"};
  process.command = {"perf", "record", "-g", "-k", "tai", "node", "--perf-prof", "a.js"};
  const RecordingDiagnosis found = process.diagnose();
  REQUIRE(find_finding(found, "clock") != nullptr);
  CHECK(found.findings[0].finding.severity == Severity::error);
  CHECK(fix_of(found, "clock") ==
        "perf record -g -k mono -- node --interpreted-frames-native-stack --perf-prof a.js");
}

TEST_CASE("all warnings propose the same command, with the options of all of them", "[doctor]") {
  RecordedFakeProcess process;
  process.mapped = {"/tmp/none/jit-42.dump"};
  const std::string all =
      "perf record -g -k mono -m 16M -- node --perf-basic-prof "
      "--interpreted-frames-native-stack a.js";
  process.lost = 7;
  const RecordingDiagnosis found = process.diagnose();
  CHECK(fix_of(found, "clock") == all);
  CHECK(fix_of(found, "no-map") == all);
  CHECK(fix_of(found, "lost-events") == all);
  CHECK(fix_of(found, "frame-pointers") == all);
  // A finding of level info proposes its option in a command of its own.
  CHECK(fix_of(found, "no-build-ids").find(" --buildid-mmap ") != std::string::npos);
  CHECK(all.find("--buildid-mmap") == std::string::npos);
}

TEST_CASE("lost events are reported, and the fix enlarges the buffer", "[doctor]") {
  RecordedFakeProcess process;
  CHECK(find_finding(process.diagnose(), "lost-events") == nullptr);
  process.lost = 7;
  CHECK(fix_of(process.diagnose(), "lost-events").find("-m 16M") != std::string::npos);
}

TEST_CASE("for a recording without a command the fix finds the process by name", "[doctor]") {
  RecordedFakeProcess process;
  process.command = {};
  process.mapped = {"/tmp/none/jit-42.dump"};
  CHECK(fix_of(process.diagnose(), "clock") ==
        "perf record -g -p \"$(pgrep -d, -x node)\" -k mono -- sleep 10");
  process.command = {"perf", "record", "-g", "-o", "-", "-p", "42"};
  CHECK(fix_of(process.diagnose(), "clock") ==
        "perf record -g -p \"$(pgrep -d, -x node)\" -k mono");
}

TEST_CASE("a process without a name is identified by its pid", "[doctor]") {
  RecordedFakeProcess process;
  process.comm = {};
  process.command = {};
  process.mapped = {"/tmp/none/jit-42.dump"};
  const RecordingDiagnosis diagnosis = process.diagnose();
  REQUIRE(diagnosis.processes.size() == 1);
  CHECK(diagnosis.processes[0].counts.comm == ":42");
  CHECK(fix_of(diagnosis, "clock") == "perf record -g -p 42 -k mono -- sleep 10");
}

TEST_CASE("files of other users are one finding per process, which replaces no-map", "[doctor]") {
  RecordedFakeProcess process;
  process.refused.foreign = {{42, "node", "/tmp/perf-42.map", 1001, "it has 2 names (hard links)"},
                             {42, "node", "/tmp/jit-42.du\x1bmp", 1001, "its header names 43"},
                             {43, "node", "/tmp/perf-43.map", 1002, "it has 2 names (hard links)"}};
  const RecordingDiagnosis diagnosis = process.diagnose();
  const auto ids = ids_of(diagnosis);
  CHECK(std::count(ids.begin(), ids.end(), "foreign-owner") == 1);
  CHECK(std::count(ids.begin(), ids.end(), "no-map") == 0);
  const RecordingFinding* const found = find_finding(diagnosis, "foreign-owner");
  REQUIRE(found != nullptr);
  CHECK(found->pid == 42);
  CHECK(found->finding.severity == Severity::warning);
  CHECK(found->finding.message ==
        "2 of 2 frames of code that Node.js generated in process 42 (node) have no name (100 %): "
        "/tmp/perf-42.map belongs to user 1001 and was not used: it has 2 names (hard links); "
        "/tmp/jit-42.du\\x1bmp belongs to user 1001 and was not used: its header names 43");
  CHECK(found->finding.fix.starts_with("perfmap stacks --any-owner "));
}

TEST_CASE("code in a mapped file that is not ELF is named, and the runtime is not blamed",
          "[doctor]") {
  RecordedFakeProcess process;
  process.memory = "/dev/shm/jit-42";
  process.open_module = [](const Region&, const ProcSource*) {
    return Failure(Error::bad_format("no ELF file"));
  };
  RecordedFakeProcess::write(process.map(), "7000000 100 hot\n");
  const RecordingDiagnosis found = process.diagnose();
  const RecordedProcessState& state = found.processes.at(0);
  CHECK(state.jit_frames == 2);
  CHECK(state.unnamed_jit == 0);
  CHECK(state.memory.regions == 1);
  CHECK(find_finding(found, "no-map") == nullptr);
  const RecordingFinding* const one = find_finding(found, "perf-ignores-region");
  REQUIRE(one != nullptr);
  CHECK(one->finding.severity == Severity::info);
}

TEST_CASE(
    "samples in memory that was not recorded as executable are reported if they have no names",
    "[doctor]") {
  RecordedFakeProcess process;
  process.program = "/usr/bin/cat";
  process.access = 3;
  const RecordingDiagnosis found = process.diagnose();
  CHECK(found.processes.at(0).in_unrecorded_code == 1);
  const RecordingFinding* const one = find_finding(found, "unrecorded-code");
  REQUIRE(one != nullptr);
  CHECK(one->pid == 42);
  CHECK(one->finding.severity == Severity::warning);
  CHECK(one->finding.message.starts_with(
      "1 of 1 samples of process 42 (node) have no name, because "));
  SECTION("a map names them") {
    RecordedFakeProcess::write(process.map(), "7000000 100 hot\n");
    CHECK(find_finding(process.diagnose(), "unrecorded-code") == nullptr);
  }
  SECTION("the memory is recorded as executable") {
    process.access = 5;
    CHECK(find_finding(process.diagnose(), "unrecorded-code") == nullptr);
  }
  SECTION("the memory is a mapping of a file") {
    process.memory = "/usr/lib/libx.so";
    CHECK(find_finding(process.diagnose(), "unrecorded-code") == nullptr);
  }
}

TEST_CASE("a child's files include those of the process whose memory it inherited", "[doctor]") {
  RecordedFakeProcess process;
  process.parent = 41;
  RecordedFakeProcess::write(process.tmp() + "/perf-41.map", "7000000 1000 of_parent\n");
  const RecordingDiagnosis found = process.diagnose();
  REQUIRE(found.processes.size() == 1);
  CHECK(found.processes[0].counts.pid == 42);
  CHECK(found.processes[0].unnamed_jit == 0);
  const auto& files = found.processes[0].looked_for;
  REQUIRE(files.size() == 3);
  CHECK(files[0].our_path == process.map());
  CHECK(files[0].fate == FileFate::missing);
  CHECK(files[0].inherited_from == 0);
  CHECK(files[2].our_path == process.tmp() + "/perf-41.map");
  CHECK(files[2].fate == FileFate::used);
  CHECK(files[2].entries == 1);
  CHECK(files[2].inherited_from == 41);
  CHECK(found.processes[0].memory.named_bytes == 0x1000);
  const std::string text =
      written([&](OutputFile& out) { write_recording_doctor_text(out, found); });
  CHECK(text.find("/perf-41.map: used, 1 entry, for memory inherited from process 41\n") !=
        std::string::npos);
}

TEST_CASE("a parent's file that is not used is listed with its child's files", "[doctor]") {
  RecordedFakeProcess process;
  process.parent = 41;
  RecordedFakeProcess::write(process.tmp() + "/perf-41.map", "");
  const RecordingDiagnosis empty = process.diagnose();
  REQUIRE(empty.processes.at(0).looked_for.size() == 3);
  CHECK(empty.processes[0].looked_for[2].fate == FileFate::empty);
  CHECK(empty.processes[0].looked_for[2].inherited_from == 41);
  const std::string text =
      written([&](OutputFile& out) { write_recording_doctor_text(out, empty); });
  CHECK(
      text.find(
          "/perf-41.map: empty (file of process 41, from which this process inherited memory)\n") !=
      std::string::npos);
  process.refused.foreign = {
      {41, "node", process.tmp() + "/perf-41.map", 1001, "it has 2 names (hard links)"}};
  RecordedFakeProcess::write(process.tmp() + "/perf-41.map", "7000000 1000 of_parent\n");
  CHECK(fix_of(process.diagnose(), "foreign-owner").starts_with("perfmap stacks --any-owner "));
}

TEST_CASE("the parent's files do not count for memory that the child mapped itself", "[doctor]") {
  RecordedFakeProcess process;
  process.parent = 41;
  process.remaps = true;
  RecordedFakeProcess::write(process.tmp() + "/perf-41.map", "7000000 1000 of_parent\n");
  const RecordingDiagnosis found = process.diagnose();
  CHECK(found.processes.at(0).unnamed_jit == 2);
  CHECK(found.processes[0].looked_for.size() == 2);
}

TEST_CASE("a proposed stack size is larger and valid for perf", "[doctor]") {
  CHECK(sufficient_stack_size(8192, 1, 100) == 16384);
  CHECK(sufficient_stack_size(8192, 90, 100) == 32768);
  CHECK(sufficient_stack_size(32768, 90, 100) == 65528);
  CHECK(sufficient_stack_size(65528, 90, 100) == 0);
  CHECK(sufficient_stack_size(1000, 1, 100) == 8192);
}

TEST_CASE("bytes of a recording are escaped in the report", "[doctor]") {
  const std::string text = written([](OutputFile& out) {
    RecordingDiagnosis diagnosis;
    diagnosis.path = "a\x1b[31m.data";
    diagnosis.command_line = {"perf", "\n"};
    write_recording_doctor_text(out, diagnosis);
  });
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\\x1b") != std::string::npos);
  CHECK(text.find("no problem found") != std::string::npos);
}

}  // namespace perfmap::test::doctor_recording_test
