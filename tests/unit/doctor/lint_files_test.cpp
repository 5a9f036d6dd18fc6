// SPDX-License-Identifier: MIT
// A process's files: owner, age, place, and why they were not read.

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/linted_process.hpp"
#include "support/skip.hpp"

namespace perfmap::lint_files_test {
namespace {

namespace fs = std::filesystem;
using test::LintedProcess;
using test::PlantedProcess;
using Findings = std::vector<std::string>;

const std::string kMap = "1000 10 first function\n";

bool is_root() {
  if (::geteuid() == 0) return true;
  test::skip("only root can give a file away");
  return false;
}

void make_old(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24 * 365 * 40));
}

/// Makes /tmp a directory of the host, which the process does not see.
void use_tmp_of_the_host(LintedProcess& process) {
  process.options.roots.tmp = process.planted.scratch() / "host";
}

}  // namespace

TEST_CASE("a process's own map at its path has no findings", "[lint-process]") {
  LintedProcess process;
  process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
  process.planted.put("root/tmp/perf-3.map", kMap);
  CHECK(process.findings() == Findings{});
}

TEST_CASE("a process without files has no findings", "[lint-process]") {
  LintedProcess process;
  CHECK(process.findings() == Findings{});
  CHECK(process.not_read.empty());
}

TEST_CASE("PM060: a map of another user is reported, whether it is read or not", "[lint-process]") {
  if (!is_root()) return;
  LintedProcess process;
  process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
  const std::string path = process.planted.put("root/tmp/perf-3.map", kMap);
  process.user(1234);
  CHECK(process.findings() == Findings{"perf-3.map PM060 1:1"});  // root is trusted
  REQUIRE(::chown(path.c_str(), 1234, 1234) == 0);
  CHECK(process.findings() == Findings{});
  REQUIRE(::chown(path.c_str(), 666, 666) == 0);
  CHECK(process.findings() == Findings{"!perf-3.map PM060 1:1"});
  CHECK(process.not_read[0].problems.items()[0].message ==
        "it belongs to user 666, and the process runs as user 1234: not read (to use it: "
        "--any-owner)");
  process.options.any_owner = true;
  CHECK(process.findings() == Findings{"perf-3.map PM060 1:1"});
}

TEST_CASE("PM062: a link, a FIFO and a directory in place of a map are reported and not followed",
          "[lint-process][hostile]") {
  LintedProcess process;
  const std::string map = process.planted.path("root/tmp/perf-3.map");
  const std::string dump = process.planted.path("root/tmp/jit-3.dump");
  fs::create_symlink("/etc/passwd", map);
  REQUIRE(::mkfifo(dump.c_str(), 0600) == 0);
  CHECK(process.findings() == Findings{"!perf-3.map PM062 1:1", "!jit-3.dump PM062 +0x0"});
  CHECK(process.not_read[0].problems.items()[0].message ==
        "it is a symbolic link, so it was not read");
  fs::remove(map);
  fs::remove(dump);
  fs::create_directory(map);
  CHECK(process.findings() == Findings{"!perf-3.map PM062 1:1"});
}

TEST_CASE("PM064: a file older than the process is reported", "[lint-process]") {
  LintedProcess process;
  process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
  const std::string path = process.planted.put("root/tmp/perf-3.map", kMap);
  make_old(path);
  CHECK(process.findings() == Findings{"perf-3.map PM064 1:1"});
  fs::last_write_time(path, fs::file_time_type::clock::now());
  CHECK(process.findings() == Findings{});
}

TEST_CASE("PM065: only the files of the process that ended are reported", "[lint-process]") {
  LintedProcess process;
  use_tmp_of_the_host(process);
  process.planted.put("../../host/perf-42.map", kMap);
  process.planted.put("../../host/jit-42.dump", "");
  process.planted.put("../../host/perf-43.map", kMap);
  process.planted.vanish();
  CHECK(process.findings() == Findings{"perf-42.map PM065 1:1", "jit-42.dump PM065 +0x0"});
  fs::remove(process.planted.scratch() / "host/perf-42.map");
  fs::create_symlink("/etc/passwd", process.planted.scratch() / "host/perf-42.map");
  CHECK(process.findings() == Findings{"jit-42.dump PM065 +0x0", "!perf-42.map PM065 1:1"});
}

TEST_CASE("PM066: a file named by another pid than the innermost is reported", "[lint-process]") {
  LintedProcess process;
  SECTION("in the process's own /tmp, where readers do not find it") {
    process.planted.put("root/tmp/perf-42.map", kMap);
    CHECK(process.findings() == Findings{"!perf-42.map PM066 1:1"});
    SECTION("not if the right one is there, too") {
      process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
      process.planted.put("root/tmp/perf-3.map", kMap);
      CHECK(process.findings() == Findings{});
    }
    SECTION("not if another process has that pid there") {
      fs::create_directories(process.planted.path("root/proc/42"));
      CHECK(process.findings() == Findings{});
    }
  }
  SECTION("on the host, where some readers look") {
    use_tmp_of_the_host(process);
    process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
    process.planted.put("../../host/perf-42.map", kMap);
    CHECK(process.findings() == Findings{"perf-42.map PM066 1:1"});
    process.user(::geteuid(), "42");
    CHECK(process.findings() == Findings{});
  }
}

TEST_CASE("mapped dumps count in any directory, but at most 64 of them",
          "[lint-process][hostile]") {
  LintedProcess process;
  std::string maps;
  for (int i = 1; i <= 100; ++i) {
    const std::string name = "/home/user/jit-" + std::to_string(i) + ".dump";
    REQUIRE((i > 1 || fs::create_directories(process.planted.path("root/home/user"))));
    fs::create_symlink("/etc/passwd", process.planted.path("root" + name));
    maps += std::to_string(i) + "000-" + std::to_string(i) + "800 r-xp 0 8:1 " + std::to_string(i) +
            " " + name + "\n";
  }
  process.planted.put("maps", maps);
  const Findings found = process.findings();
  CHECK(found.size() == 64);
  CHECK(found.front() == "!jit-1.dump PM062 +0x0");
}

TEST_CASE("PM067: a sparse file is not read, and that is reported", "[lint-process][hostile]") {
  LintedProcess process;
  const std::string path = process.planted.put("root/tmp/perf-3.map", kMap);
  fs::resize_file(path, std::uintmax_t{1} << 40);
  CHECK(process.findings() == Findings{"!perf-3.map PM067 1:1"});
}

TEST_CASE("XF003: a second map of the same process is reported", "[lint-process]") {
  LintedProcess process;
  use_tmp_of_the_host(process);
  process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
  process.planted.put("../../host/perf-42.map", kMap);
  process.planted.put("root" + process.options.roots.tmp + "/perf-3.map", kMap);
  CHECK(process.findings() == Findings{"!perf-42.map XF003 1:1"});
}

TEST_CASE("a process's root that is a link is not followed", "[lint-process][hostile]") {
  LintedProcess process;
  use_tmp_of_the_host(process);
  fs::remove_all(process.planted.path("root"));
  fs::create_directory_symlink("/", process.planted.path("root"));
  process.planted.put("../../elsewhere/perf-3.map", kMap);
  CHECK(process.findings() == Findings{});
}

TEST_CASE("unreadable memory does not hide the files, and an unused pid is no error",
          "[lint-process][hostile]") {
  LintedProcess process;
  fs::remove(process.planted.path("maps"));
  REQUIRE(::mkfifo(process.planted.path("maps").c_str(), 0600) == 0);
  fs::create_symlink("/etc/passwd", process.planted.path("root/tmp/perf-3.map"));
  const auto look = [&](pid_t pid) {
    return lint_process(pid, {}, Diagnostics(0), process.options);
  };
  const auto unseen = look(PlantedProcess::kPid);
  REQUIRE(unseen);
  REQUIRE(unseen->unseen);
  CHECK(unseen->unseen->code == Errc::refused);
  CHECK(unseen->unread.size() == 1);
  fs::remove(process.planted.path("status"));
  REQUIRE(::mkfifo(process.planted.path("status").c_str(), 0600) == 0);
  const auto refused = look(PlantedProcess::kPid);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::refused);
  const auto absent = look(43);
  REQUIRE(absent);
  CHECK(absent->unread.empty());
}

}  // namespace perfmap::lint_files_test
