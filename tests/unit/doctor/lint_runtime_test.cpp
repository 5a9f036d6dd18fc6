// SPDX-License-Identifier: MIT
// Start options of a process's runtime that decide whether code has names.

#include <chrono>
#include <filesystem>

#include "support/catch.hpp"
#include "support/linted_process.hpp"

namespace perfmap::lint_runtime_test {
namespace {

namespace fs = std::filesystem;
using test::LintedProcess;
using Findings = std::vector<std::string>;
using namespace std::string_literals;

const std::string kJava =
    "1000-2000 r-xp 0 0:0 0 \n5000-6000 r-xp 0 8:1 5 /usr/lib/jvm/lib/server/libjvm.so\n";
const std::string kPython = "1000-2000 r-xp 0 0:0 0 \n5000-6000 r-xp 0 8:1 5 /usr/bin/python3.13\n";

/// Plants process 7 as the parent, with a root and a map of its own.
void plant_parent(const LintedProcess& process, const std::string& map) {
  process.planted.put("../7/stat",
                      "7 (python3) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 900 9 9 9\n");
  process.planted.put("../7/status", "Name:\tpython3\nTgid:\t7\nUid:\t0\t0\t0\t0\nNStgid:\t7\n");
  process.planted.put("../7/maps", kPython);
  process.planted.put("../7/auxv", "first program");
  process.planted.put("../7/root/tmp/perf-7.map", map);
  process.planted.start(1000);
}

}  // namespace

TEST_CASE("PM091: a JVM without frame pointers is reported", "[lint-process]") {
  LintedProcess process;
  process.planted.put("maps", kJava);
  process.planted.put("root/tmp/perf-3.map", "1000 10 void Main.main()\n");
  const auto findings_with = [&](const std::string& words, const std::string& environment = "") {
    process.planted.put("cmdline", words);
    process.planted.put("environ", environment);
    return process.findings();
  };
  const Findings found{"perf-3.map PM091 1:1"};
  CHECK(findings_with("java\0Main\0"s) == found);
  CHECK(findings_with("java\0-XX:+PreserveFramePointer\0Main\0"s) == Findings{});
  CHECK(findings_with("java\0-XX:+PreserveFramePointer\0-XX:-PreserveFramePointer\0"s) == found);
  const std::string word = "-Xint -XX:+PreserveFramePointer";
  CHECK(findings_with("java\0Main\0"s, "JAVA_TOOL_OPTIONS=" + word + '\0') == Findings{});
  CHECK(findings_with("java\0Main\0"s, "OTHER_OPTIONS=" + word + '\0') == found);
  CHECK(findings_with("java\0-XX:-PreserveFramePointer\0"s, "JAVA_TOOL_OPTIONS=" + word + '\0') ==
        found);
  CHECK(findings_with("java\0-XX:-PreserveFramePointer\0"s, "_JAVA_OPTIONS=" + word + '\0') ==
        Findings{});
  CHECK(findings_with("") == Findings{});  // unreadable
  process.planted.put("maps", kPython);
  CHECK(findings_with("java\0Main\0"s) == Findings{});
}

TEST_CASE("PM092: a JVM's map older than a minute is reported", "[lint-process]") {
  LintedProcess process;
  process.planted.put("maps", kJava);
  process.planted.put("cmdline", "java\0-XX:+PreserveFramePointer\0"s);
  const std::string path = process.planted.put("root/tmp/perf-3.map", "1000 10 void Main.main()\n");
  CHECK(process.findings() == Findings{});
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  // The machine may have been booted later: then PM064 is reported as well.
  const Findings findings = process.findings();
  CHECK(findings.back() == "perf-3.map PM092 1:1");
  process.planted.put("maps", kPython);
  const Findings others = process.findings();
  CHECK(std::count(others.begin(), others.end(), "perf-3.map PM092 1:1") == 0);
}

TEST_CASE("PM094: a fork without a map of a Python program with a map is reported",
          "[lint-process]") {
  LintedProcess process;
  process.planted.put("maps", kPython);
  plant_parent(process, "1000 b py::main:/a.py\n");
  REQUIRE(process.findings() == Findings{"!perf-3.map PM094 1:1"});
  CHECK(process.not_read[0].problems.items()[0].message ==
        "no such file, while process 7, which forked this one, has a map");
  SECTION("not if it has a map") {
    process.planted.put("root/tmp/perf-3.map", "1000 b py::main:/a.py\n");
    CHECK(process.findings() == Findings{});
  }
  SECTION("not if its map is refused") {
    fs::create_symlink("/etc/passwd", process.planted.path("root/tmp/perf-3.map"));
    CHECK(process.findings() == Findings{"!perf-3.map PM062 1:1"});
  }
  SECTION("not if it runs another program since") {
    process.planted.put("auxv", "second program");
    CHECK(process.findings() == Findings{});
  }
  SECTION("not if it is not Python") {
    process.planted.put("maps", kJava);
    CHECK(process.findings() == Findings{});
  }
  SECTION("not if its parent writes no names of functions") {
    process.planted.put("../7/root/tmp/perf-7.map", "1000 10 wasm\n");
    CHECK(process.findings() == Findings{});
  }
  SECTION("not if its parent has ended") {
    fs::remove_all(process.planted.path("../7"));
    CHECK(process.findings() == Findings{});
  }
}

}  // namespace perfmap::lint_runtime_test
