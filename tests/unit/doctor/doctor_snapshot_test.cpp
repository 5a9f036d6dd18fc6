// SPDX-License-Identifier: MIT
// What the doctor reports about a process of which only a snapshot exists.

#include "support/fake_process.hpp"

namespace perfmap::test::doctor_snapshot_test {
namespace {

using Strings = std::vector<std::string>;

struct SnapshotOfFakeProcess : FakeProcess {
  SnapshotOfFakeProcess() {
    options.is_snapshot = true;
    write(outside("perf-42.map"), "10000 100 one\n");
  }
  SnapshotOfFakeProcess& without_arguments() {
    std::filesystem::remove(planted.path("cmdline"));
    return *this;
  }
};

}  // namespace

TEST_CASE("flags that a snapshot does not contain are not proposed", "[doctor]") {
  SnapshotOfFakeProcess process;
  const auto only = [&](std::string_view id) {
    const Diagnosis found = process.diagnose();
    CHECK(ids_of(found) == Strings{std::string(id)});
    CHECK(!found.misses_names());
    return found.findings.at(0);
  };
  SECTION("of the JVM") {
    process.program("/jdk/bin/java", {"java", "-XX:+PreserveFramePointer", "A"});
    CHECK(process.diagnose().findings.empty());
    process.without_arguments();
    CHECK(only("frame-pointers").fix.empty());
    CHECK(only("frame-pointers").message ==
          "Java code keeps no frame pointers, so stacks end at compiled methods, unless it was "
          "started with -XX:+PreserveFramePointer (this snapshot has no command line; 'perfmap "
          "snapshot --with-command-line' keeps it)");
    process.program("/jdk/bin/java", {"java", "A"});
    CHECK(only("frame-pointers").fix == "java -XX:+PreserveFramePointer A");
    CHECK(only("frame-pointers").message.ends_with("which a snapshot does not contain"));
  }
  SECTION("of Node.js") {
    process.program("/usr/bin/node");
    process.without_arguments();
    CHECK(only("interpreted-frames").fix.empty());
    CHECK(only("interpreted-frames").message.find("--with-command-line") != std::string::npos);
  }
}

TEST_CASE("the fix for a JVM in a snapshot without a map is jcmd on the living JVM", "[doctor]") {
  SnapshotOfFakeProcess process;
  std::filesystem::remove(process.outside("perf-42.map"));
  process.program("/jdk/bin/java", {"java", "-XX:+PreserveFramePointer", "A"});
  process.status("Tgid:\t42\nNStgid:\t42\n");
  process.options.reader = FakeProcess::uid();
  const Diagnosis found = process.diagnose();
  CHECK(ids_of(found) == Strings{"no-map"});
  CHECK(found.findings[0].message.ends_with(
      "only if jcmd asks for it: run jcmd, and take another snapshot"));
  CHECK(found.findings[0].fix == "jcmd 42 Compiler.perfmap");
  process.status("Tgid:\t42\nNStgid:\t42\t3\n");
  CHECK(process.diagnose().findings.at(0).fix ==
        std::string(FakeProcess::uid() == 0 ? "" : "sudo ") +
            "nsenter --target 42 --mount --pid -- jcmd 3 Compiler.perfmap");
}

}  // namespace perfmap::test::doctor_snapshot_test
