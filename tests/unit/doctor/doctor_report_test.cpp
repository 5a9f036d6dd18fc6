// What the doctor prints, also for processes with hostile names and contents.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "support/patient.hpp"

namespace perfmap {
namespace {

using test::ids_of;
using test::Patient;
using test::text_of;
using Strings = std::vector<std::string>;

bool is_harmless(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  });
}

}  // namespace

TEST_CASE("the text names the process, the files looked for, the problem and the fix", "[doctor]") {
  Patient patient;
  patient.program("/usr/bin/node", {"node", "a.js"});
  Patient::write(patient.outside("perf-42.map"), "");
  const std::string root = patient.planted.path("root");
  const std::string tmp = patient.options.roots.tmp;
  CHECK(text_of(patient.diagnose(), false) ==
        "process   42 (node), user " + std::to_string(Patient::uid()) +
            "\n"
            "runtime   node, by its executable /usr/bin/node\n"
            "memory    64 KiB of executable memory without an ELF file, in 1 region; 0 B (0 %) "
            "have names\n"
            "looked for\n"
            "  " +
            root + tmp + "/perf-3.map: not there (the process's " + tmp +
            "/perf-3.map)\n"
            "  " +
            tmp +
            "/perf-42.map: empty\n"
            "  " +
            root + tmp + "/jit-3.dump: not there (the process's " + tmp +
            "/jit-3.dump)\n"
            "  " +
            tmp +
            "/jit-42.dump: not there\n"
            "\n"
            "warning: Node.js was not told to write a perf map, so its functions have no names "
            "[no-map]\n"
            "  fix: node --perf-basic-prof --interpreted-frames-native-stack a.js\n");
}

TEST_CASE("the JSON has the same content as the text", "[doctor]") {
  Patient patient;
  patient.program("/usr/bin/python3.12", {"python3", "a.py"});
  Patient::write(patient.inside("perf-3.map"), "10000 100 py::f:/a.py\n");
  const auto json = nlohmann::json::parse(text_of(patient.diagnose(), true));
  CHECK(json["schema"] == "perfmap.doctor/1");
  CHECK(json["pid"] == 42);
  CHECK(json["comm"] == "node");
  CHECK(json["uid"] == Patient::uid());
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
  Patient patient;
  patient.planted.start(1000, 'S', "\x1b]0;evil\x07) R (\n");
  patient.program("/tmp/\x1b[2J\nnode", {"\x1b[2J", "a\nb", "\xff'"});
  patient.maps(
      "10000-20000 rwxp 0 0:1 9 /memfd:\x1b[31m (deleted)\n"
      "30000-31000 r-xp 0 8:1 7 /\x1b[2J/jit-3.dump\n"
      "40000-41000 r-xp 0 8:1 7 /\x1b/libnode.so\n");
  patient.environment({"NODE_OPTIONS=--perf-basic-prof\x1b"});
  const Diagnosis found = patient.diagnose();
  CHECK(is_harmless(text_of(found, false)));
  const std::string json = text_of(found, true);
  CHECK(is_harmless(json));
  CHECK(nlohmann::json::parse(json)["runtime"] == "node");
}

TEST_CASE("enormous command lines are truncated", "[doctor][hostile]") {
  Patient patient;
  Strings words(10000, std::string(100, 'x'));
  words[0] = "node";
  patient.program("/usr/bin/node", words);
  const std::string fix = patient.diagnose().findings[0].fix;
  CHECK(fix.size() < 1000);
  CHECK(fix.ends_with(" ..."));
  words = {std::string(100000, 'n')};
  CHECK(patient.program("/usr/bin/node", words).diagnose().findings[0].fix.size() < 1000);
}

TEST_CASE("a malformed /proc is examined", "[doctor][hostile]") {
  Patient patient;
  SECTION("an exe that is not a link, and no command line") {
    patient.planted.put("exe", "no link");
    patient.planted.put("cmdline", "");
  }
  SECTION("an executable without a path") { patient.program("(deleted)", {""}); }
  SECTION("malformed and overlapping regions") {
    patient
        .maps(
            "nonsense\n0-ffffffffffffffff rwxp 0 0:0 0 \n1000-2000 rwxp 0 0:0 0 \n"
            "2000-1000 rwxp 0 0:0 0 \n")
        .program("/usr/bin/node");
    Patient::write(patient.inside("perf-3.map"), "0 ffffffffffffffff all\nffffffffffffffff 1 x\n");
  }
  SECTION("invalid pids") {
    patient.planted.put("status", "Name:\tx\nNStgid:\t99999999999\t-1\t0\nUid:\tx\n");
    patient.program("/usr/bin/node");
  }
  const Diagnosis found = patient.diagnose();
  CHECK(is_harmless(text_of(found, false)));
  CHECK(!text_of(found, true).empty());
}

TEST_CASE("a process that cannot be examined is an error", "[doctor]") {
  Patient patient;
  patient.program("/usr/bin/node");
  CHECK(diagnose(43, patient.options).error().code == Errc::not_found);
  patient.planted.put("status", "Name:\tx\nTgid:\t7\n");
  CHECK(diagnose(42, patient.options).error().message == "42 is a thread of process 7");
  std::filesystem::remove(patient.planted.path("maps"));
  REQUIRE(::mkfifo(patient.planted.path("maps").c_str(), 0600) == 0);
  CHECK(diagnose(42, patient.options).error().code == Errc::refused);
  patient.planted.vanish();
  CHECK(diagnose(42, patient.options).error().code == Errc::not_found);
}

TEST_CASE("kernel settings are reported if they limit the reader", "[doctor]") {
  Patient patient;
  patient.program("/usr/bin/node", {"node", "--interpreted-frames-native-stack"});
  Patient::write(patient.inside("perf-3.map"), "10000 100 one\n");
  const auto ids_with = [&](uid_t reader, const std::string& paranoid, const std::string& kptr) {
    patient.options.reader = reader;
    patient.planted.scratch().write("proc/sys/kernel/perf_event_paranoid", paranoid);
    patient.planted.scratch().write("proc/sys/kernel/kptr_restrict", kptr);
    const Diagnosis found = patient.diagnose();
    CHECK(!found.misses_names());
    return ids_of(found);
  };
  CHECK(ids_with(0, "4\n", "1\n").empty());
  CHECK(ids_with(0, "4\n", "2\n") == Strings{"kptr-restrict"});
  CHECK(ids_with(1000, "2\n", "1\n").empty());
  CHECK(ids_with(1000, "3\n", "0\n") == Strings{"perf-paranoid"});
  CHECK(ids_with(1000, "-1\n", "1\n") == Strings{"kptr-restrict"});
  CHECK(ids_with(1000, "nonsense", "").empty());
}

}  // namespace perfmap
