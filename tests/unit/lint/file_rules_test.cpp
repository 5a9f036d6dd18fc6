// SPDX-License-Identifier: MIT
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::file_rules_test {
namespace {

using Places = std::vector<std::string>;
constexpr const char* kText = "7f0000001000 10 first function\n";

/// Findings about the file at `path`, except about its directory.
Places file_findings(const std::string& path) {
  const Result<Input> input = Input::open(path);
  REQUIRE(input);
  Diagnostics problems(0);
  problems.ignore(rule::kOddDirectory);
  lint(Map(*input), problems);
  return test::places_of(problems, "PM06");
}

Places directory_findings(const std::string& path) {
  const Result<Input> input = Input::open(path);
  REQUIRE(input);
  Diagnostics problems(0);
  lint(Map(*input), problems);
  return test::places_of(problems, "PM070");
}

}  // namespace

TEST_CASE("all maps of a run are checked with one search for writers", "[lint]") {
  const test::Scratch directory;
  const test::Scratch proc;
  const auto add_writer = [&](const std::string& pid, const std::string& file) {
    proc.write(pid + "/fdinfo/4", "flags:\t0102001\n");
    std::filesystem::create_directories(proc / (pid + "/fd"));
    std::filesystem::create_symlink(file, proc / (pid + "/fd/4"));
  };
  FileWriters writers(proc.path());
  const auto findings_of = [&](const std::string& path) {
    Diagnostics problems(0);
    lint(Map(*Input::open(path)), problems, &writers);
    return test::places_of(problems, "PM070");
  };
  const std::string first = directory.write("perf-1.map", kText);
  const std::string second = directory.write("perf-2.map", kText);
  add_writer("17", first);
  CHECK(findings_of(first) == Places{"PM070 1:1"});
  add_writer("18", second);
  CHECK(findings_of(second).empty());
}

TEST_CASE("a file that its group or all users can write is reported", "[lint]") {
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", kText);
  for (const mode_t mode : {0664, 0646, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(file_findings(path) == Places{"PM061 1:1"});
  }
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(file_findings(path).empty());
}

TEST_CASE("a symbolic link and a device are reported as not regular", "[lint]") {
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", kText);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);  // independent of the umask
  std::filesystem::create_symlink(path, directory / "perf-2.map");
  CHECK(file_findings(directory / "perf-2.map") == Places{"PM062 1:1"});
  CHECK(file_findings("/dev/null") == Places{"PM062 1:1", "PM068 1:1"});
}

TEST_CASE("a file that only a foreign owner can read is reported", "[lint]") {
  if (::geteuid() != 0) {
    test::skip("only root can give a file away and still read it");
    return;
  }
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", kText);
  REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  CHECK(file_findings(path) == Places{"PM063 1:1"});
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(file_findings(path).empty());
  REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  CHECK(file_findings(path).empty());
}

TEST_CASE("more than a million entries, or 50 MB, are reported", "[lint]") {
  std::string text;
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "%zx 10 abc\n", 0x7f0000000000 + i * 16);
    text += line;
  }
  CHECK(test::places_of(test::lint_text(text), "PM067").empty());
  CHECK(test::places_of(test::lint_text(text + "7fff00000000 10 abc\n"), "PM067") ==
        Places{"PM067 1:1"});
  const std::string comment = "#" + std::string(49'999'900, ' ') + "\n";
  CHECK(test::places_of(test::lint_text(comment), "PM067").empty());
  CHECK(test::places_of(test::lint_text(comment + comment), "PM067") == Places{"PM067 1:1"});
}

TEST_CASE("a map that a process writes is reported if it is not in /tmp or a container's /tmp",
          "[lint]") {
  const test::Scratch directory;
  const std::string name = "perf-" + std::to_string(::getpid()) + ".map";
  const auto findings_while_open = [&](const std::string& file) {
    const std::string path = directory.write(file, kText);
    const std::ofstream writer(path, std::ios::app);
    return directory_findings(path);
  };
  CHECK(findings_while_open(name) == Places{"PM070 1:1"});
  CHECK(findings_while_open("root/tmp/" + name).empty());
  CHECK(findings_while_open("app.map").empty());
  // A copy, although the process lives.
  CHECK(directory_findings(directory.write("copy/" + name, kText)).empty());
}

}  // namespace perfmap::file_rules_test
