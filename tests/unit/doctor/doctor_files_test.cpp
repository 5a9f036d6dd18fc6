// SPDX-License-Identifier: MIT
// Which files the doctor finds and trusts, and whether perf would use them.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fake_process.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/skip.hpp"

namespace perfmap::doctor_files_test {
namespace {

namespace fs = std::filesystem;
using test::FakeProcess;
using test::fates_of;
using test::finding_of;
using test::ids_of;
using Strings = std::vector<std::string>;

constexpr const char* kLines = "10000 100 one\n10080 100 two\n50000 10 elsewhere\n";

void make_old(const std::string& path) {
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
}

struct FakeNode : FakeProcess {
  FakeNode() { program("/usr/bin/node", {"node", "--interpreted-frames-native-stack", "a.js"}); }
};

std::string dump_text() {
  return test::DumpBytes().header().load_of_size(5, 0x10000, 0x800, "loaded").text();
}

}  // namespace

TEST_CASE("a map in the process's own /tmp is used, and the memory that it names is counted",
          "[doctor]") {
  const FakeNode process;
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  const Diagnosis found = process.diagnose();
  CHECK(fates_of(found) == Strings{"used", "missing", "missing", "missing"});
  CHECK(found.looked_for[0].entries == 3);
  CHECK(found.looked_for[0].path == process.outside("perf-3.map"));
  CHECK(found.looked_for[0].our_path == process.inside("perf-3.map"));
  CHECK(found.memory.regions == 1);
  CHECK(found.memory.named_bytes == 0x180);
  CHECK(found.memory.executable_hits == 2);
  CHECK(found.findings.empty());
  CHECK(!found.misses_names());
  CHECK(test::text_of(found, false).ends_with("\nno problem found\n"));
}

TEST_CASE("a second map is reported as shadowed", "[doctor]") {
  const FakeNode process;
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  FakeProcess::write(process.outside("perf-42.map"), kLines);
  CHECK(fates_of(process.diagnose())[1] == "shadowed");
}

TEST_CASE("untrusted files are reported with a command that fixes them", "[doctor][hostile]") {
  const FakeNode process;
  const std::string path = process.inside("perf-3.map");
  const auto first = [&] { return process.diagnose().findings.at(0); };
  SECTION("a link") {
    fs::create_symlink("/etc/passwd", path);
    CHECK(fates_of(process.diagnose())[0] == "link");
    CHECK(ids_of(process.diagnose()) == Strings{"not-a-file", "no-map"});
    CHECK(first().severity == Severity::error);
    CHECK(first().fix == "rm " + path);
  }
  SECTION("a FIFO, which must not block") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(fates_of(process.diagnose())[0] == "not-regular");
    CHECK(first().message.ends_with("a FIFO, not a regular file"));
  }
  SECTION("a directory") {
    fs::create_directory(path);
    CHECK(first().message.ends_with("a directory"));
    CHECK(first().fix == "rm -r " + path);
  }
  SECTION("a file older than the process") {
    make_old(FakeProcess::write(path, kLines));
    CHECK(fates_of(process.diagnose())[0] == "stale");
    CHECK(ids_of(process.diagnose()) == Strings{"stale", "no-map"});
  }
  SECTION("an empty file") {
    FakeProcess::write(path, "");
    CHECK(fates_of(process.diagnose())[0] == "empty");
    CHECK(ids_of(process.diagnose()) == Strings{"no-map"});
  }
  SECTION("a sparse file of 1 TiB") {
    fs::resize_file(FakeProcess::write(path, "1000"), std::uintmax_t{1} << 40);
    CHECK(fates_of(process.diagnose())[0] == "too-large");
  }
  SECTION("a foreign owner") {
    FakeProcess::write(path, kLines);
    if (::chown(path.c_str(), 12345, 12345) != 0) {
      test::skip("only root can give files away");
      return;
    }
    CHECK(fates_of(process.diagnose())[0] == "foreign-owner");
    CHECK(ids_of(process.diagnose()) == Strings{"foreign-owner"});
    CHECK(first().fix == "rm " + path);  // never --any-owner: an attacker may have written the file
    CHECK(process.diagnose().memory.named_bytes == 0);
  }
  SECTION("a root directory that cannot be entered") {
    fs::remove_all(process.planted.path("root"));
    fs::create_directory_symlink("/", process.planted.path("root"));
    CHECK(fates_of(process.diagnose())[0] == "unreachable");
    CHECK(ids_of(process.diagnose()) == Strings{"unreadable"});
  }
}

TEST_CASE("the fix uses sudo if the reader is not root", "[doctor]") {
  FakeNode process;
  process.options.reader = ::geteuid() + 1000;
  fs::create_symlink("/etc/passwd", process.inside("perf-3.map"));
  CHECK(process.diagnose().findings[0].fix == "sudo rm " + process.inside("perf-3.map"));
  fs::remove_all(process.planted.path("root"));
  fs::create_directory_symlink("/", process.planted.path("root"));
  CHECK(process.diagnose().findings[0].fix == "sudo perfmap doctor 42");
}

TEST_CASE("a map in a container that is named by the outer pid gets a link with the inner pid",
          "[doctor]") {
  const FakeNode process;
  FakeProcess::write(process.inside("perf-42.map"), kLines);
  const Diagnosis found = process.diagnose();
  CHECK(ids_of(found) == Strings{"other-pid"});
  CHECK(found.findings[0].fix ==
        "ln " + process.inside("perf-42.map") + " " + process.inside("perf-3.map"));
}

TEST_CASE("perf does not find a map named by the inner pid if the mounts are shared", "[doctor]") {
  const FakeNode process;
  process.share_mounts();
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  const Diagnosis found = process.diagnose();
  CHECK(ids_of(found) == Strings{"perf-path"});
  CHECK(found.misses_names());
  CHECK(found.findings[0].fix ==
        "ln -s " + process.inside("perf-3.map") + " " + process.outside("perf-42.map"));
  fs::create_symlink("/etc/passwd", process.outside("perf-42.map"));
  CHECK(ids_of(process.diagnose()) == Strings{"perf-path"});
  fs::remove(process.outside("perf-42.map"));
  fs::create_symlink(process.inside("perf-3.map"), process.outside("perf-42.map"));
  CHECK(process.diagnose().findings.empty());
  CHECK(fates_of(process.diagnose())[1] == "shadowed");
}

TEST_CASE("a map that names no memory of the process is reported", "[doctor]") {
  const FakeNode process;
  const std::string path = process.inside("perf-3.map");
  FakeProcess::write(path, "90000 10 one\n");
  CHECK(ids_of(process.diagnose()) == Strings{"nothing-fits"});
  CHECK(process.diagnose().misses_names());
  FakeProcess::write(path, "nonsense\n");
  CHECK(ids_of(process.diagnose()) == Strings{"no-entries"});
}

TEST_CASE("memory that perf does not look up in a map is reported", "[doctor]") {
  FakeProcess process;
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  process.program("/opt/dotnet", {"dotnet", "a.dll"})
      .maps("10000-20000 r-xs 0 0:1 9 /memfd:doublemapper (deleted)\n");
  Diagnosis found = process.diagnose();
  CHECK(ids_of(found) == Strings{"perf-ignores-region"});
  CHECK(found.memory.ignored_bytes == 0x180);
  CHECK(found.findings[0].fix ==
        "DOTNET_PerfMapEnabled=1 DOTNET_EnableWriteXorExecute=0 dotnet a.dll");
  process.program("/opt/app").maps("10000-20000 r-xp 0 0:0 0 [anon:my jit]\n");
  CHECK(process.diagnose().findings[0].fix == "perf record -g -- /opt/app");
  process.maps("10000-20000 r-xs 0 0:1 9 /memfd:\x1b[31m (deleted)\n");
  found = process.diagnose();
  CHECK(found.findings[0].fix ==
        "perf record -k mono -g -p 42 && perfmap stacks --format perf-script perf.data");
  CHECK(found.findings[0].message.find('\x1b') == std::string::npos);
}

TEST_CASE("a mapped file that is not ELF counts as JIT memory if a map names it", "[doctor]") {
  FakeProcess process;
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  const auto maps_file = [&](const std::string& bytes) {
    const std::string path = process.planted.put("root/dev/shm/jit-3", bytes);
    struct stat file {};
    REQUIRE(::stat(path.c_str(), &file) == 0);
    process.program("/opt/app")
        .maps("10000-20000 r-xs 0 0:1 " + std::to_string(file.st_ino) + " /dev/shm/jit-3\n");
  };
  maps_file("code");
  const Diagnosis found = process.diagnose();
  CHECK(found.memory.regions == 1);
  CHECK(found.memory.named_bytes == 0x180);
  CHECK(ids_of(found) == Strings{"perf-ignores-region"});
  CHECK(found.findings[0].fix ==
        "perf record -k mono -g -p 42 && perfmap stacks --format perf-script perf.data");
  maps_file("\177ELF");
  CHECK(process.diagnose().memory.regions == 0);
  maps_file("code");
  FakeProcess::write(process.inside("perf-3.map"), "90000 10 elsewhere\n");
  CHECK(process.diagnose().memory.regions == 0);
}

TEST_CASE("perf needs the marker mapping and the right name to find a dump", "[doctor]") {
  FakeNode process;
  const std::string code = "10000-20000 rwxp 0 0:0 0 \n";
  const std::string dump = process.planted.put("root/app/jit-3.dump", dump_text());
  process.maps(code + "30000-31000 r-xp 0 8:1 7 /app/jit-3.dump\n");
  Diagnosis found = process.diagnose();
  CHECK(ids_of(found) == Strings{"perf-inject"});
  CHECK(!found.misses_names());
  CHECK(found.memory.named_bytes == 0x800);
  CHECK(found.looked_for.back().our_path == dump);

  process.maps(code + "30000-31000 r--p 0 8:1 7 /app/jit-3.dump\n");
  CHECK(ids_of(process.diagnose()) == Strings{"no-marker"});
  CHECK(process.diagnose().findings[0].fix == "perfmap copy " + dump + " --to-pid 42");
  fs::rename(dump, process.planted.path("root/app/jit-42.dump"));
  process.maps(code + "30000-31000 r-xp 0 8:1 7 /app/jit-42.dump\n");
  CHECK(ids_of(process.diagnose()) == Strings{"dump-name"});
  // A map makes the dump unnecessary.
  FakeProcess::write(process.inside("perf-3.map"), kLines);
  CHECK(process.diagnose().findings.empty());
}

TEST_CASE("an old snapshot written by the JVM is reported with its age", "[doctor]") {
  FakeProcess process;
  process.program("/jdk/bin/java", {"java", "-XX:+PreserveFramePointer", "A"});
  const std::string path = FakeProcess::write(process.inside("perf-3.map"), kLines);
  CHECK(process.diagnose().findings.empty());
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  if (boot.tv_sec < 400) {
    test::skip("the machine runs too short a time");
    return;
  }
  const timespec ago[2] = {{now.tv_sec - 300, 0}, {now.tv_sec - 300, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), ago, 0) == 0);
  CHECK(ids_of(process.diagnose()) == Strings{"snapshot"});
  CHECK(finding_of(process.diagnose(), "snapshot").message.find("5 min") != std::string::npos);
}

TEST_CASE("a child's memory counts as named if the map of its living parent names it",
          "[doctor][fork]") {
  const FakeProcess process;
  const auto plant_parent = [&](const std::string& auxv) {
    const test::Scratch& scratch = process.planted.scratch();
    std::string users;  // in the format of /proc/PID/status
    for (int i = 0; i < 4; ++i) users += "\t" + std::to_string(::geteuid());
    // The parent of the planted process.
    scratch.write("proc/7/stat",
                  "7 (node) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 900 9 9 9\n");
    scratch.write("proc/7/status",
                  "Name:\tnode\nTgid:\t7\nPPid:\t1\nUid:" + users + "\nNStgid:\t7\n");
    scratch.write("proc/7/maps", "10000-20000 rwxp 00000000 00:00 0 \n");
    scratch.write("proc/7/auxv", auxv);
    scratch.write("proc/7/cmdline", "node");
    fs::create_directories(scratch / ("proc/7/root" + process.options.roots.tmp));
    FakeProcess::write(scratch / ("proc/7/root" + process.options.roots.tmp + "/perf-7.map"),
                       "10000 100 parent's\n");
  };
  process.status("Tgid:\t42\nPPid:\t7\nNStgid:\t42\t3\n");
  SECTION("the child has inherited the parent's memory") {
    plant_parent("first program");
    const Diagnosis found = process.diagnose();
    CHECK(found.memory.named_bytes == 0x100);
    CHECK(found.looked_for.back().inherited_from == 7);
    CHECK(found.looked_for.back().fate == FileFate::used);
    CHECK(!found.misses_names());
    CHECK(test::text_of(found, false).find("used, 1 entry, for memory inherited from process 7") !=
          std::string::npos);
    CHECK(test::text_of(found, true).find("\"inherited_from\":7") != std::string::npos);
  }
  SECTION("the child runs another program than its parent") {
    plant_parent("another program");
    const Diagnosis found = process.diagnose();
    CHECK(found.memory.named_bytes == 0);
    CHECK(found.looked_for.back().inherited_from == 0);
    CHECK(found.misses_names());
  }
}

}  // namespace perfmap::doctor_files_test
