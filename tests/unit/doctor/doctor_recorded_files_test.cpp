// SPDX-License-Identifier: MIT
// Which files the doctor finds for a recording, whether they are used, and what it advises.

#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>

#include "support/jitdump_bytes.hpp"
#include "support/recorded_fake_process.hpp"
#include "support/written.hpp"

namespace perfmap::test::doctor_recorded_files_test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr const char* kLines = "7000000 100 hot\n";

Strings fates(const RecordingDiagnosis& diagnosis) {
  Strings fates;
  for (const LookedFor& file : diagnosis.processes.at(0).looked_for) {
    fates.emplace_back(to_string(file.fate));
  }
  return fates;
}

/// Makes process 42, which perf attached to, alive.
void start_node(RecordedFakeProcess& process) {
  process.lives = true;
  process.command = {"perf", "record", "-g", "-p", "42"};
  const PlantedProcess& planted = process.planted;
  fs::create_directories(planted.path("root/" + process.tmp()));
  planted.start(1);
  const std::string us = std::to_string(::geteuid());
  planted.put("status", "Name:\tnode\nTgid:\t42\nUid:\t0\t" + us + "\t0\t0\nNStgid:\t42\t3\n");
  planted.put("maps", "7000000-7001000 rwxp 00000000 00:00 0 \n");
  planted.put("cmdline", std::string("node\0server.js\0", 15));
  fs::create_symlink("/usr/bin/node", planted.path("exe"));
}

}  // namespace

TEST_CASE("a map that names code of a recorded process is reported as used", "[doctor]") {
  const RecordedFakeProcess process;
  RecordedFakeProcess::write(process.map(), kLines);
  const RecordingDiagnosis found = process.diagnose();
  CHECK(fates(found) == Strings{"used", "missing"});
  CHECK(found.processes[0].looked_for[0].entries == 1);
  CHECK(found.processes[0].looked_for[0].our_path == process.map());
  CHECK(found.processes[0].unnamed_jit == 0);
  CHECK(ids_of(found) == Strings{"frame-pointers", "no-build-ids"});
}

TEST_CASE("a file that was not copied is the reason for missing names", "[doctor]") {
  RecordedFakeProcess process;
  process.missing = {{"/tmp/perf-43.map", 43, "it is of another process"}};
  CHECK(find_finding(process.diagnose(), "not-copied") == nullptr);
  process.missing.push_back({"/tmp/perf-\n42.map", 42, "no space\nis left"});
  const RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "not-copied");
  REQUIRE(one != nullptr);
  CHECK(one->pid == 42);
  CHECK(one->finding.severity == Severity::warning);
  CHECK(one->finding.message.find('\n') == std::string::npos);
  CHECK(one->finding.message.ends_with("is left"));
  CHECK(find_finding(found, "no-map") == nullptr);
  RecordedFakeProcess::write(process.map(), kLines);  // copied later
  CHECK(find_finding(process.diagnose(), "not-copied") == nullptr);
}

TEST_CASE("the advice for a recorded process without a map repeats perf's command with a flag",
          "[doctor]") {
  const RecordingDiagnosis found = RecordedFakeProcess().diagnose();
  CHECK(fates(found) == Strings{"missing", "missing"});
  const RecordingFinding* const one = find_finding(found, "no-map");
  REQUIRE(one != nullptr);
  CHECK(one->pid == 42);
  CHECK(one->finding.severity == Severity::warning);
  CHECK(one->finding.message ==
        "2 of 2 frames of code that Node.js generated in process 42 (node) have no name (100 %): "
        "Node.js is not configured to write a perf map, so its functions have no names"
        "; with the option, V8 also writes a log to the working directory, or prints it if it "
        "cannot");
  CHECK(one->finding.fix ==
        "perf record -g -- node --perf-basic-prof --interpreted-frames-native-stack a.js");
}

TEST_CASE("a process that ended before V8 generated code lacks no map", "[doctor]") {
  RecordedFakeProcess process;
  process.memory = "/usr/lib/libnode.so";
  CHECK(find_finding(process.diagnose(), "no-map") == nullptr);
  process.command = {"/usr/bin/perf", "record", "-g", "--", "node", "--perf-basic-prof", "a.js"};
  CHECK(find_finding(process.diagnose(), "lost-map") == nullptr);
  process.below = "//anon";
  CHECK(find_finding(process.diagnose(), "lost-map") != nullptr);
}

TEST_CASE("a runtime that a script starts gets its flags through the environment", "[doctor]") {
  RecordedFakeProcess process;
  process.command = {"perf", "record", "-g", "./run.sh", "it's"};
  const RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "no-map");
  REQUIRE(one != nullptr);
  CHECK(one->finding.message.find("writes one only if it is configured to") != std::string::npos);
  CHECK(one->finding.fix ==
        "NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack' "
        "perf record -g -- ./run.sh 'it'\\''s'");
}

TEST_CASE("flags that were set are not proposed: the map is reported as lost", "[doctor]") {
  RecordedFakeProcess process;
  const auto lost = [&] {
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "lost-map");
    REQUIRE(one != nullptr);
    CHECK(find_finding(found, "no-map") == nullptr);
    return one->finding;
  };
  process.command = {"perf", "record", "-g", "node", "--perf-basic-prof", "a.js"};
  CHECK(lost().message.find("was started with --perf-basic-prof, but its file does not exist") !=
        std::string::npos);
  CHECK(lost().fix ==
        "perf record -g -- node --interpreted-frames-native-stack --perf-basic-prof a.js");
  process.command = {"perf", "record", "-g", "sh", "-c", "exec node --perf-basic-prof a.js"};
  CHECK(lost().message.find("--perf-basic-prof") != std::string::npos);
  RecordedFakeProcess::write(process.map(), "");
  CHECK(fates(process.diagnose())[0] == "empty");
  CHECK(lost().message.find("its file is empty") != std::string::npos);
}

TEST_CASE("after a colon only names start with a capital letter", "[doctor]") {
  for (const auto& [program, begin] : {std::pair{"/jdk/lib/server/libjvm.so", ": the JVM left"},
                                       {"/usr/bin/node", ": Node.js left"}}) {
    RecordedFakeProcess process;
    process.program = program;
    process.command = {"perf", "record", "-g", "-p", "42"};
    RecordedFakeProcess::write(process.map(), "");
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "lost-map");
    REQUIRE(one != nullptr);
    CHECK(one->finding.message.find(begin) != std::string::npos);
  }
}

TEST_CASE("for a process that perf attached to, the variables to set are reported", "[doctor]") {
  RecordedFakeProcess process;
  process.command = {"perf", "record", "-g", "-p", "42"};
  const RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "no-map");
  REQUIRE(one != nullptr);
  CHECK(one->finding.message.ends_with(
      "; set this in the environment that starts it, and record again"));
  CHECK(one->finding.fix ==
        "export NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack'");
}

TEST_CASE("a command with pids is repeated if all these processes live", "[doctor]") {
  RecordedFakeProcess process;
  start_node(process);
  process.mapped = {"/tmp/none/jit-42.dump"};
  const auto fix_for = [&](const std::string& pids) {
    process.command.back() = pids;
    const RecordingDiagnosis found = process.diagnose();
    REQUIRE(find_finding(found, "clock") != nullptr);
    return find_finding(found, "clock")->finding.fix;
  };
  CHECK(fix_for("42").find(" -p 42 -k mono") != std::string::npos);
  CHECK(fix_for("42,42").find(" -p 42,42 -k mono") != std::string::npos);
  for (const char* const pids : {"42,142", "142,42"}) {
    CHECK(fix_for(pids).find(" -p \"$(pgrep -d, -x node)\"") != std::string::npos);
  }
}

TEST_CASE("the command line of a recorded process that still lives is used", "[doctor]") {
  RecordedFakeProcess process;
  start_node(process);
  const PlantedProcess& planted = process.planted;
  RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "no-map");
  REQUIRE(one != nullptr);
  CHECK(one->finding.fix == "node --perf-basic-prof --interpreted-frames-native-stack server.js");
  SECTION("its map is found in its mount namespace, by its inner pid") {
    const std::string inside = planted.path("root" + process.tmp() + "/perf-3.map");
    RecordedFakeProcess::write(inside, kLines);
    found = process.diagnose();
    CHECK(fates(found)[0] == "used");
    CHECK(found.processes[0].looked_for[0].our_path == inside);
    CHECK(found.processes[0].unnamed_jit == 0);
  }
  SECTION("another program with the same pid is not used") {
    fs::remove(planted.path("exe"));
    fs::create_symlink("/usr/bin/ruby", planted.path("exe"));
    found = process.diagnose();
    REQUIRE(find_finding(found, "no-map") != nullptr);
    CHECK(find_finding(found, "no-map")->finding.fix.find("server.js") == std::string::npos);
  }
}

TEST_CASE("a heap or a file of code below the program does not hide the runtime", "[doctor]") {
  RecordedFakeProcess process;
  process.command = {"/usr/bin/perf", "record", "-g", "-p", "42"};
  SECTION("memory without a file") {
    process.below = "//anon";
    process.program = "/usr/bin/racket";
    process.comm = "racket";
    CHECK(process.diagnose().processes[0].runtime == Runtime::racket);
  }
  SECTION("the core of SBCL, after the process has ended") {
    process.below = "/usr/lib/sbcl/sbcl.core";
    process.program = "/usr/bin/sbcl";
    process.comm = "sbcl";
    CHECK(process.diagnose().processes[0].runtime == Runtime::sbcl);
  }
  SECTION("the core of SBCL, while the process lives") {
    process.below = "/usr/lib/sbcl/sbcl.core";
    process.program = "/usr/bin/sbcl";
    process.lives = true;
    fs::create_symlink("/usr/bin/sbcl", process.planted.path("exe"));
    process.planted.put("cmdline", std::string("sbcl\0--script\0", 14));
    const RecordingDiagnosis gone = process.diagnose();
    CHECK(gone.processes[0].runtime == Runtime::sbcl);
    CHECK(gone.processes[0].evidence == "executable /usr/lib/sbcl/sbcl.core");
    process.planted.put("maps", "1000-2000 r-xp 0 8:1 7 /usr/lib/sbcl/sbcl.core\n");
    const RecordingDiagnosis living = process.diagnose();
    CHECK(living.processes[0].evidence == "executable /usr/bin/sbcl");
  }
}

TEST_CASE("untrusted files of recorded processes are reported", "[doctor][hostile]") {
  RecordedFakeProcess process;
  const auto only = [&](std::string_view fate, std::string_view id) {
    const RecordingDiagnosis found = process.diagnose();
    CHECK(fates(found)[0] == fate);
    const auto ids = ids_of(found);
    CHECK(std::count(ids.begin(), ids.end(), id) == 1);
    const RecordingFinding* const one = find_finding(found, id);
    return one == nullptr ? DoctorFinding() : one->finding;
  };
  SECTION("a link") {
    fs::create_symlink("/etc/passwd", process.map());
    CHECK(only("link", "not-a-file").fix == "rm " + process.map());
  }
  SECTION("a FIFO, which must not block") {
    REQUIRE(::mkfifo(process.map().c_str(), 0600) == 0);
    only("not-regular", "not-a-file");
  }
  SECTION("a sparse file of 1 TiB") {
    fs::resize_file(RecordedFakeProcess::write(process.map(), "1000"), std::uintmax_t{1} << 40);
    only("too-large", "too-large");
  }
  SECTION("a foreign owner") {
    RecordedFakeProcess::write(process.map(), kLines);
    if (::chown(process.map().c_str(), 12345, 12345) != 0 ||
        process.diagnose().processes.at(0).unnamed_jit == 0) {
      WARN("skipped: only root can give files away, and the owner may be guessed");
      return;
    }
    const DoctorFinding one = only("foreign-owner", "foreign-owner");
    CHECK(one.fix.starts_with("perfmap stacks --any-owner "));
    process.any_owner = true;
    CHECK(fates(process.diagnose())[0] == "used");
    CHECK(find_finding(process.diagnose(), "foreign-owner") == nullptr);
  }
  SECTION("no valid entry") {
    RecordedFakeProcess::write(process.map(), "what is this\n");
    CHECK(only("used", "no-entries").fix.starts_with("perfmap lint --recording "));
  }
  SECTION("entries elsewhere in memory") {
    RecordedFakeProcess::write(process.map(), "100 10 elsewhere\n");
    only("used", "nothing-fits");
  }
}

TEST_CASE("a damaged dump is used up to the damage, whose offset is reported", "[doctor]") {
  RecordedFakeProcess process;
  const std::string dump = process.tmp() + "/jit-42.dump";
  process.mapped = {dump};
  process.clock = CLOCK_MONOTONIC;
  std::string text =
      DumpBytes().header().load_of_size(5, RecordedFakeProcess::kCode, 0x10, "whole").text();
  text += DumpBytes()
              .load_of_size(6, RecordedFakeProcess::kCode + 0x10, 0x40, "cut")
              .text()
              .substr(0, 30);
  RecordedFakeProcess::write(dump, text);
  const RecordingDiagnosis found = process.diagnose();
  CHECK(fates(found) == Strings{"missing", "used"});
  const LookedFor& file = found.processes[0].looked_for[1];
  CHECK(file.has_marker);
  CHECK(file.entries == 1);
  CHECK(file.damage.starts_with("JD201: "));
  const RecordingFinding* const one = find_finding(found, "damaged-dump");
  REQUIRE(one != nullptr);
  CHECK(one->finding.message.find("at byte") != std::string::npos);
  CHECK(one->finding.fix == "perfmap lint " + dump);
  CHECK(find_finding(found, "unnamed-jit") != nullptr);
  CHECK(find_finding(found, "no-map") == nullptr);
}

TEST_CASE("a dump that is not mapped in the recording needs --jitdump", "[doctor]") {
  const RecordedFakeProcess process;
  const std::string dump = RecordedFakeProcess::write(
      process.tmp() + "/jit-42.dump",
      DumpBytes().header().load_of_size(5, RecordedFakeProcess::kCode, 0x800, "all").text());
  const RecordingDiagnosis found = process.diagnose();
  CHECK(fates(found) == Strings{"missing", "shadowed"});
  const RecordingFinding* const one = find_finding(found, "no-marker");
  REQUIRE(one != nullptr);
  CHECK(one->finding.fix.starts_with("perfmap stacks --jitdump " + dump + " "));
  CHECK(one->finding.message.ends_with(
      dump +
      ": not used, because the recording does not show that this file belongs to this process"));
  CHECK(find_finding(found, "no-map") == nullptr);
}

TEST_CASE("memory that perf looks up in no map is reported, as that of .NET", "[doctor]") {
  RecordedFakeProcess process;
  process.memory = "/memfd:doublemapper (deleted)";
  RecordedFakeProcess::write(process.map(), kLines);
  const RecordingDiagnosis found = process.diagnose();
  CHECK(found.processes.at(0).runtime == Runtime::v8);
  const RecordingFinding* const one = find_finding(found, "perf-ignores-region");
  REQUIRE(one != nullptr);
  CHECK(one->finding.severity == Severity::info);
  CHECK(one->finding.message.find("/memfd:doublemapper") != std::string::npos);
  CHECK(one->finding.fix.starts_with("perfmap stacks --format perf-script "));
}

TEST_CASE("--map-dir replaces the directories in which maps are searched", "[doctor]") {
  RecordedFakeProcess process;
  process.map_dir = process.planted.scratch() / "kept";
  fs::create_directories(process.map_dir);
  RecordedFakeProcess::write(process.map(), kLines);
  CHECK(fates(process.diagnose()) == Strings{"missing", "missing"});
  RecordedFakeProcess::write(process.map_dir + "/perf-42.map", kLines);
  CHECK(fates(process.diagnose()) == Strings{"used", "missing"});
}

TEST_CASE("the message for a process of a container that has ended mentions the container",
          "[doctor]") {
  RecordedFakeProcess process;
  process.pid_namespace = 0xf0000001;
  const auto message = [&] {
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "no-map");
    return one == nullptr ? std::string() : one->finding.message;
  };
  CHECK(message().find("the process ran in a container") != std::string::npos);
  process.pid_namespace = 0xeffffffc;  // that of the host
  CHECK(message().find("container") == std::string::npos);
}

TEST_CASE("text and JSON contain the files that were looked for", "[doctor]") {
  RecordedFakeProcess process;
  const RecordingDiagnosis found = process.diagnose();
  const std::string text =
      written([&](OutputFile& out) { write_recording_doctor_text(out, found); });
  CHECK(text.find("    looked for " + process.map() + ": no such file\n") != std::string::npos);
  const std::string json =
      written([&](OutputFile& out) { write_recording_doctor_json(out, found); });
  CHECK(json.find("\"looked_for\":[{\"kind\":\"perf-map\"") != std::string::npos);
  CHECK(json.find("\"early_ends\":[]") != std::string::npos);
}

}  // namespace perfmap::test::doctor_recorded_files_test
