// SPDX-License-Identifier: MIT
// Which users can remove a file without sudo.

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/findings.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::test::remove_command_test {
namespace {

constexpr uid_t kReader = 12345;
constexpr uid_t kOther = 12346;

}  // namespace

TEST_CASE("root needs no sudo, and other users need it for a file that does not exist",
          "[doctor]") {
  CHECK(remove_command("/tmp/none here", 0) == "rm '/tmp/none here'");
  CHECK(remove_command("/no such/file", kReader) == "sudo rm '/no such/file'");
}

TEST_CASE("the owner removes a file and a directory without sudo", "[doctor]") {
  const Scratch scratch;
  const std::string path = scratch.write("perf-1.map", "x");
  CHECK(remove_command(path, ::geteuid()) == "rm " + path);
  const std::string directory = scratch / "perf-2.map";
  std::filesystem::create_directory(directory);
  CHECK(remove_command(directory, ::geteuid()) == "rm -r " + directory);
}

TEST_CASE("the sticky bit and the owners decide whether sudo is needed", "[doctor]") {
  struct Case {
    mode_t mode;
    uid_t directory;
    uid_t file;
    bool needs_sudo;
  };
  const auto c = GENERATE(values<Case>({
      {01777, 0, kReader, false},  // /tmp, own file
      {01777, 0, kOther, true},    // file of another user
      {01777, 0, 0, true},
      {01777, kReader, kOther, false},  // own directory
      {0777, 0, kOther, false},         // without a sticky bit only the directory's mode counts
      {0755, 0, kReader, true},         // not writable
      {0755, kReader, kOther, false},
      {0555, kReader, kReader, true},
  }));
  CAPTURE(c.mode, c.directory, c.file);
  const Scratch scratch;
  const std::string path = scratch.write("tmp/perf-1.map", "x");
  const std::string directory = scratch / "tmp";
  if (::chown(path.c_str(), c.file, c.file) != 0 ||
      ::chown(directory.c_str(), c.directory, c.directory) != 0) {
    skip("only root can give files away");
    return;
  }
  REQUIRE(::chmod(directory.c_str(), c.mode) == 0);
  CHECK(remove_command(path, kReader) == (c.needs_sudo ? "sudo rm " : "rm ") + path);
}

TEST_CASE("removing a directory of another user needs sudo", "[doctor]") {
  const Scratch scratch;
  const std::string path = scratch / "tmp/perf-1.map";
  std::filesystem::create_directories(path);
  const std::string directory = scratch / "tmp";
  REQUIRE(::chmod(directory.c_str(), 0777) == 0);
  if (::chown(path.c_str(), kOther, kOther) != 0) {
    skip("only root can give files away");
    return;
  }
  CHECK(remove_command(path, kReader) == "sudo rm -r " + path);
  REQUIRE(::chown(path.c_str(), kReader, kReader) == 0);
  CHECK(remove_command(path, kReader) == "rm -r " + path);
}

}  // namespace perfmap::test::remove_command_test
