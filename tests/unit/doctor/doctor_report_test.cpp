// SPDX-License-Identifier: MIT
// What the doctor prints, also for processes with hostile names and contents.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "support/fake_process.hpp"

namespace perfmap::doctor_report_test {
namespace {

using test::FakeProcess;
using test::ids_of;
using test::text_of;
using Strings = std::vector<std::string>;

bool is_harmless(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  });
}

}  // namespace

TEST_CASE("the text names the process, the files looked for, the problem and the fix", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/node", {"node", "a.js"});
  FakeProcess::write(process.outside("perf-42.map"), "");
  const std::string root = process.planted.path("root");
  const std::string tmp = process.options.roots.tmp;
  CHECK(text_of(process.diagnose(), false) ==
        "process   42 (node), user " + std::to_string(FakeProcess::uid()) +
            "\n"
            "runtime   node (recognized by its executable /usr/bin/node)\n"
            "memory    64 KiB of executable memory without an ELF file, in 1 region; 0 B (0 %) "
            "have names\n"
            "looked for\n"
            "  " +
            root + tmp + "/perf-3.map: no such file (the process's " + tmp +
            "/perf-3.map)\n"
            "  " +
            tmp +
            "/perf-42.map: empty\n"
            "  " +
            root + tmp + "/jit-3.dump: no such file (the process's " + tmp +
            "/jit-3.dump)\n"
            "  " +
            tmp +
            "/jit-42.dump: no such file\n"
            "\n"
            "warning: Node.js is not configured to write a perf map, so its functions have no names"
            "; with the option, V8 also writes a log to the working directory, or prints it if it "
            "cannot [no-map]\n"
            "  fix: node --perf-basic-prof --interpreted-frames-native-stack a.js\n");
}

TEST_CASE("the JSON has the same content as the text", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/python3.12", {"python3", "a.py"});
  FakeProcess::write(process.inside("perf-3.map"), "10000 100 py::f:/a.py\n");
  const auto json = nlohmann::json::parse(text_of(process.diagnose(), true));
  CHECK(json["schema"] == "perfmap.doctor/1");
  CHECK(json["pid"] == 42);
  CHECK(json["comm"] == "node");
  CHECK(json["uid"] == FakeProcess::uid());
  CHECK(json["runtime"] == "cpython");
  CHECK(json["runtime_version"] == "3.12");
  CHECK(json["jit_memory"]["named_bytes"] == 256);
  CHECK(json["looked_for"][0]["fate"] == "used");
  CHECK(json["looked_for"][0]["entries"] == 1);
  CHECK(json["looked_for"][1]["path"].is_null());
  CHECK(json["looked_for"][2]["marker"] == false);
  CHECK(json["findings"].empty());
}

TEST_CASE("control characters in names of a process do not reach the terminal",
          "[doctor][hostile]") {
  FakeProcess process;
  process.planted.start(1000, 'S', "\x1b]0;evil\x07) R (\n");
  process.program("/tmp/\x1b[2J\nnode", {"\x1b[2J", "a\nb", "\xff'"});
  process.maps(
      "10000-20000 rwxp 0 0:1 9 /memfd:\x1b[31m (deleted)\n"
      "30000-31000 r-xp 0 8:1 7 /\x1b[2J/jit-3.dump\n"
      "40000-41000 r-xp 0 8:1 7 /\x1b/libnode.so\n");
  process.environment({"NODE_OPTIONS=--perf-basic-prof\x1b"});
  const Diagnosis found = process.diagnose();
  CHECK(is_harmless(text_of(found, false)));
  const std::string json = text_of(found, true);
  CHECK(is_harmless(json));
  CHECK(nlohmann::json::parse(json)["runtime"] == "node");
}

TEST_CASE("enormous command lines are truncated", "[doctor][hostile]") {
  FakeProcess process;
  Strings words(10000, std::string(100, 'x'));
  words[0] = "node";
  process.program("/usr/bin/node", words);
  const std::string fix = process.diagnose().findings[0].fix;
  CHECK(fix.size() < 1000);
  CHECK(fix.ends_with(" ..."));
  words = {std::string(100000, 'n')};
  CHECK(process.program("/usr/bin/node", words).diagnose().findings[0].fix.size() < 1000);
}

TEST_CASE("a malformed /proc is examined", "[doctor][hostile]") {
  FakeProcess process;
  SECTION("an exe that is not a link, and no command line") {
    process.planted.put("exe", "no link");
    process.planted.put("cmdline", "");
  }
  SECTION("an executable without a path") { process.program("(deleted)", {""}); }
  SECTION("malformed and overlapping regions") {
    process
        .maps(
            "nonsense\n0-ffffffffffffffff rwxp 0 0:0 0 \n1000-2000 rwxp 0 0:0 0 \n"
            "2000-1000 rwxp 0 0:0 0 \n")
        .program("/usr/bin/node");
    FakeProcess::write(process.inside("perf-3.map"),
                       "0 ffffffffffffffff all\nffffffffffffffff 1 x\n");
  }
  SECTION("invalid pids") {
    process.planted.put("status", "Name:\tx\nNStgid:\t99999999999\t-1\t0\nUid:\tx\n");
    process.program("/usr/bin/node");
  }
  const Diagnosis found = process.diagnose();
  CHECK(is_harmless(text_of(found, false)));
  CHECK(!text_of(found, true).empty());
}

TEST_CASE("a process that cannot be examined is an error", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/node");
  CHECK(diagnose(43, process.options).error().code == Errc::not_found);
  process.planted.put("status", "Name:\tx\nTgid:\t7\n");
  CHECK(diagnose(42, process.options).error().message() == "42 is a thread of process 7");
  std::filesystem::remove(process.planted.path("maps"));
  REQUIRE(::mkfifo(process.planted.path("maps").c_str(), 0600) == 0);
  CHECK(diagnose(42, process.options).error().code == Errc::refused);
  process.planted.vanish();
  CHECK(diagnose(42, process.options).error().code == Errc::not_found);
}

TEST_CASE("kernel settings are reported if they limit the reader", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/node", {"node", "--interpreted-frames-native-stack"});
  FakeProcess::write(process.inside("perf-3.map"), "10000 100 one\n");
  const auto ids_with = [&](uid_t reader, const std::string& paranoid, const std::string& kptr) {
    process.options.reader = reader;
    process.planted.scratch().write("proc/sys/kernel/perf_event_paranoid", paranoid);
    process.planted.scratch().write("proc/sys/kernel/kptr_restrict", kptr);
    const Diagnosis found = process.diagnose();
    CHECK(!found.misses_names());
    return ids_of(found);
  };
  CHECK(ids_with(0, "4\n", "1\n").empty());
  CHECK(ids_with(0, "4\n", "2\n") == Strings{"kptr-restrict"});
  CHECK(ids_with(1000, "2\n", "1\n").empty());
  CHECK(ids_with(1000, "3\n", "0\n") == Strings{"perf-paranoid"});
  CHECK(process.diagnose().findings[0].fix == "sudo sysctl kernel.perf_event_paranoid=1");
  CHECK(ids_with(1000, "-1\n", "1\n") == Strings{"kptr-restrict"});
  CHECK(ids_with(1000, "nonsense", "").empty());
}

}  // namespace perfmap::doctor_report_test
