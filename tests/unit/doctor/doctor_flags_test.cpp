// SPDX-License-Identifier: MIT
// How flags and variables that a runtime already has change the advice.

#include <fcntl.h>
#include <sys/stat.h>

#include "support/fake_process.hpp"
#include "support/recorded_fake_process.hpp"

namespace perfmap::test::doctor_flags_test {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("Node.js with --jitless is advised to compile, not to write a map", "[doctor]") {
  FakeProcess process;
  process.maps("1000-2000 r-xp 0 8:1 7 /usr/bin/node\n");
  const auto only = [&] {
    const Diagnosis found = process.diagnose();
    CHECK(ids_of(found) == Strings{"only-interpreted"});
    return found.findings.at(0);
  };
  process.program("/usr/bin/node", {"node", "--jitless", "a.js", "--jitless"});
  CHECK(only().severity == Severity::warning);
  CHECK(only().fix == "node --perf-basic-prof --interpreted-frames-native-stack a.js --jitless");
  // With --jitless the map names no code.
  process.program("/usr/bin/node", {"node", "--perf-basic-prof", "--jitless", "a.js"});
  CHECK(only().fix == "node --interpreted-frames-native-stack --perf-basic-prof a.js");
  FakeProcess::write(process.inside("perf-3.map"), "90000 10 JS:~f a.js:1:1\n");
  only();
  std::filesystem::remove(process.inside("perf-3.map"));
  process.program("/usr/bin/node", {"node", "a.js"}).environment({"NODE_OPTIONS=--jitless"});
  CHECK(only().fix == "node --perf-basic-prof --interpreted-frames-native-stack a.js");
  process.environment({"NODE_OPTIONS=-r x --jitless --no-warnings"});
  CHECK(only().fix ==
        "NODE_OPTIONS='-r x --no-warnings' node --perf-basic-prof "
        "--interpreted-frames-native-stack a.js");
  process.program("/usr/bin/node", {"node", "--jitless", "--no-jitless", "a.js"}).environment({});
  CHECK(ids_of(process.diagnose()) == Strings{"no-map"});
}

TEST_CASE("a recorded program that is only interpreted is told so", "[doctor]") {
  RecordedFakeProcess process;
  const auto told = [&](std::string program, std::vector<std::string> command) {
    process.comm = program.substr(program.rfind('/') + 1);
    process.program = std::move(program);
    process.command = {"perf", "record", "-g", "--"};
    process.command.insert(process.command.end(), command.begin(), command.end());
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "only-interpreted");
    return one != nullptr && one->finding.severity == Severity::info;
  };
  CHECK(told("/jdk/bin/java", {"java", "-Xint", "Main"}));
  CHECK_FALSE(told("/jdk/bin/java", {"java", "Main", "-Xint"}));
  CHECK(told("/usr/bin/php8.2", {"php", "-d", "opcache.jit=off", "a.php"}));
  CHECK_FALSE(told("/usr/bin/php8.2", {"php", "-d", "opcache.jit=1255", "a.php"}));
}

TEST_CASE("a recorded release that cannot write names gets no option", "[doctor]") {
  RecordedFakeProcess process;
  process.program = "/usr/bin/ruby3.1";
  process.comm = "ruby";
  process.command = {"perf", "record", "-g", "--", "ruby", "a.rb"};
  const RecordingDiagnosis found = process.diagnose();
  const RecordingFinding* const one = find_finding(found, "too-old");
  REQUIRE(one != nullptr);
  CHECK(one->finding.fix.find("yjit") == std::string::npos);
}

TEST_CASE("recorded Node.js with --jitless is advised to start without it", "[doctor]") {
  RecordedFakeProcess process;
  process.memory = "/usr/lib/libnode.so";
  const auto only = [&] {
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "only-interpreted");
    REQUIRE(one != nullptr);
    CHECK(find_finding(found, "no-map") == nullptr);
    CHECK(find_finding(found, "lost-map") == nullptr);
    CHECK(one->finding.severity == Severity::warning);
    return one->finding;
  };
  const std::string fix =
      "perf record -g -- node --perf-basic-prof --interpreted-frames-native-stack a.js";
  process.command = {"perf", "record", "-g", "node", "--jitless", "a.js"};
  CHECK(only().fix == fix);
  RecordedFakeProcess::write(process.map(), "100 10 JS:~f a.js:1:1\n");
  CHECK(only().fix == fix);
  process.command = {"perf", "record", "-g", "sh", "-c", "node --jitless a.js"};
  CHECK(only().fix.empty());
}

TEST_CASE("PyPy that already writes a log is not advised to write one", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/pypy3.9-c", {"pypy3", "a.py"});
  const std::string log = process.planted.scratch() / "own-3.log";
  const auto only = [&](const std::string& value) {
    process.environment({"PYPYLOG=" + value});
    const Diagnosis found = process.diagnose();
    REQUIRE(found.findings.size() == 1);
    return found.findings[0];
  };
  const std::string own = process.planted.scratch() / "own-%d.log";
  // A log without code addresses is useless, and a process has only one PYPYLOG.
  for (const auto& value : Strings{"jit-summary:" + own, "jit:-", "/tmp/x.log"}) {
    CHECK(only(value).fix == "PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log pypy3 a.py");
  }
  process.share_mounts();
  CHECK(only("jit:" + own).id == "lost-map");
  CHECK(only("jit:" + own).message.ends_with(log + " does not exist"));
  CHECK(only("jit:" + own).fix == "PYPYLOG=jit:" + own + " pypy3 a.py");
  FakeProcess::write(log, "[1] {jit-backend-addr\n");
  for (const auto& value : Strings{"gc,jit-backend:" + own, "+" + own}) {
    CHECK(only(value).id == "no-map");
    CHECK(only(value).fix ==
          "perf record -g -p 42 -- sleep 10 && perfmap stacks --map " + log + " perf.data");
  }
  const std::string here = process.planted.path("cwd/mine.log");
  process.planted.put("cwd/mine.log", "[1] {jit-backend-addr\n");
  CHECK(only("jit:mine.log").fix.find(" --map " + here + " ") != std::string::npos);
}

TEST_CASE("variables in perf's command line are read, and set there", "[doctor]") {
  RecordedFakeProcess process;
  process.program = "/usr/bin/pypy3.9-c";
  process.comm = "pypy3";
  const auto fix = [&](std::string_view id) {
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, id);
    REQUIRE(one != nullptr);
    return one->finding.fix;
  };
  const std::string good = "PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log";
  process.command = {"perf", "record", "-g", "--", "pypy3", "a.py"};
  CHECK(fix("no-map") == good + " perf record -g -- pypy3 a.py");
  process.command = {"perf", "record", "-g", "--", "env", "A=1", "PYPYLOG=jit:-", "pypy3", "a.py"};
  CHECK(fix("no-map") == "perf record -g -- env A=1 " + good + " pypy3 a.py");
  const std::string log = "PYPYLOG=jit:" + process.tmp() + "/%d.log";
  process.command = {"perf", "record", "-g", "--", "env", log, "pypy3", "a.py"};
  CHECK(fix("lost-map") == "perf record -g -- env " + log + " pypy3 a.py");
  RecordedFakeProcess::write(process.tmp() + "/42.log", "x");
  CHECK(fix("no-map").starts_with("perfmap stacks --map " + process.tmp() + "/42.log "));
  process.command = {"perf", "record", "-g", "--", "sh", "-c", log + " pypy3 a.py"};
  CHECK(fix("no-map").starts_with("perfmap stacks --map " + process.tmp() + "/42.log "));
}

TEST_CASE("a log at the proposed path is used unless it is too old", "[doctor]") {
  RecordedFakeProcess process;
  process.program = "/usr/bin/pypy3.9-c";
  process.comm = "pypy3";
  process.reader = ::geteuid();
  process.command = {"perf", "record", "-g", "--", "pypy3", "a.py"};
  const std::string log = RecordedFakeProcess::write(process.tmp() + "/pypy-42.log", "x");
  const auto fix = [&] {
    const RecordingDiagnosis found = process.diagnose();
    const RecordingFinding* const one = find_finding(found, "no-map");
    return one == nullptr ? std::string() : one->finding.fix;
  };
  CHECK(fix().starts_with("perfmap stacks --map " + log + " "));
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, log.c_str(), long_ago, 0) == 0);
  CHECK(fix().starts_with("PYPYLOG="));
  std::filesystem::remove(log);
  std::filesystem::create_symlink("/etc/passwd", log);
  CHECK(fix().starts_with("PYPYLOG="));
}

}  // namespace perfmap::test::doctor_flags_test
