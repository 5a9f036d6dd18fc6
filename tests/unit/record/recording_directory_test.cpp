// SPDX-License-Identifier: MIT
// Where a recording directory is created, and what it has.

#include <cerrno>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::recording_directory_test {
namespace {

using test::Scratch;

std::string why_not(const std::string& path) {
  const Result<RecordingDirectory> directory = RecordingDirectory::create(path);
  return directory ? "" : directory.error().message();
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// A directory that any user may write to, as /tmp is.
std::string shared_directory(const Scratch& scratch) {
  std::filesystem::create_directory(scratch / "shared");
  REQUIRE(::chmod((scratch / "shared").c_str(), 01777) == 0);
  return scratch / "shared";
}

}  // namespace

TEST_CASE("a new recording directory is its owner's alone", "[record]") {
  const Scratch scratch;
  const Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec///");
  REQUIRE(directory);
  CHECK(mode_of(scratch / "rec") == 0700);
  CHECK(directory->path() == std::filesystem::canonical(scratch / "rec").string());
  REQUIRE(directory->write("perf-1.map", "1000 10 f\n"));
  CHECK(mode_of(scratch / "rec/perf-1.map") == 0600);
  CHECK_FALSE(directory->write("perf-1.map", "again"));
  CHECK(test::read_file(scratch / "rec/perf-1.map") == "1000 10 f\n");
}

TEST_CASE("an empty directory is accepted, and remains", "[record]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "rec");
  const Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  directory->discard();
  CHECK(std::filesystem::exists(scratch / "rec"));
}

TEST_CASE("an empty directory is one recording's", "[record]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "rec");
  REQUIRE(RecordingDirectory::create(scratch / "rec"));
  CHECK_FALSE(RecordingDirectory::create(scratch / "rec"));
}

TEST_CASE("a place that is in use is refused", "[record]") {
  const Scratch scratch;
  scratch.write("full/file", "x");
  scratch.write("file", "x");
  std::filesystem::create_directory(scratch / "empty");
  std::filesystem::create_directory_symlink(scratch / "empty", scratch / "link");
  std::filesystem::create_symlink("nowhere", scratch / "dangling");
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  const auto refused = [&](const std::string& name, const std::string& why) {
    return why_not(scratch / name) == "cannot create " + (scratch / name) + ": " + why;
  };
  CHECK(refused("full", "it exists and is not empty"));
  CHECK(refused("file", "it exists and is not a directory"));
  CHECK(refused("link", "it exists and is not a directory"));
  CHECK(refused("dangling", "it exists and is not a directory"));
  CHECK(refused("fifo", "it exists and is not a directory"));
  CHECK_FALSE(why_not("").empty());
  CHECK_FALSE(why_not("///").empty());
  CHECK_FALSE(why_not(scratch / "no/parent").empty());
}

TEST_CASE("a directory of another user is refused, as is one behind that user's link", "[record]") {
  if (::geteuid() != 0) return test::skip("only root can make files of other users");
  constexpr uid_t kOther = 65534;
  const Scratch scratch;
  const std::string shared = shared_directory(scratch);
  std::filesystem::create_directory(shared + "/planted");
  REQUIRE(::chown((shared + "/planted").c_str(), kOther, kOther) == 0);
  CHECK(why_not(shared + "/planted") ==
        "cannot create " + shared + "/planted: it belongs to another user");
  std::filesystem::create_directory(scratch / "ours");
  std::filesystem::create_directory_symlink(scratch / "ours", shared + "/way");
  REQUIRE(::lchown((shared + "/way").c_str(), kOther, kOther) == 0);
  CHECK_FALSE(why_not(shared + "/way/rec").empty());
  CHECK(std::filesystem::is_empty(scratch / "ours"));
}

TEST_CASE("a link in a recording directory is not written through", "[record]") {
  const Scratch scratch;
  scratch.write("victim", "before");
  const Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  std::filesystem::create_symlink(scratch / "victim", scratch / "rec/perf-1.map");
  CHECK_FALSE(directory->write("perf-1.map", "after"));
  CHECK(test::read_file(scratch / "victim") == "before");
  // The description replaces the link itself.
  std::filesystem::create_symlink(scratch / "victim", scratch / "rec/recording.json");
  REQUIRE(write_manifest(*directory, {}, {}));
  CHECK(test::read_file(scratch / "victim") == "before");
  CHECK(std::filesystem::is_regular_file(
      std::filesystem::symlink_status(scratch / "rec/recording.json")));
}

TEST_CASE("a failed recording leaves nothing, but what others have put there", "[record]") {
  const Scratch scratch;
  Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  scratch.write("rec/perf.data", "torn");
  directory->discard();
  CHECK_FALSE(std::filesystem::exists(scratch / "rec"));
  directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  scratch.write("rec/notes", "mine");
  directory->discard();
  CHECK(test::read_file(scratch / "rec/notes") == "mine");
}

TEST_CASE("files that are in an archive are removed, and others are kept", "[record]") {
  const Scratch scratch;
  Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  const std::vector<std::string> files = {"perf.data"};
  scratch.write("rec/perf.data", "x");
  CHECK(directory->remove(files));
  CHECK_FALSE(std::filesystem::exists(scratch / "rec"));
  directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  scratch.write("rec/perf.data", "x");
  scratch.write("rec/late", "x");
  const Result<void> removed = directory->remove(files);
  REQUIRE_FALSE(removed);
  CHECK(removed.error().sys_errno == ENOTEMPTY);
  CHECK(std::filesystem::exists(scratch / "rec/late"));
}

TEST_CASE("a directory that was replaced is left alone", "[record]") {
  const Scratch scratch;
  scratch.write("victim/perf.data", "mine");
  scratch.write("victim/recording.json", "mine");
  const Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  CHECK(directory->check());
  std::filesystem::rename(scratch / "rec", scratch / "moved");
  std::filesystem::create_directory_symlink(scratch / "victim", scratch / "rec");
  const std::string path = std::filesystem::canonical(scratch.path()).string();
  const Result<void> checked = directory->check();
  REQUIRE_FALSE(checked);
  CHECK(checked.error().message() ==
        path + "/rec is no longer the directory that was made: the recording is in " + path +
            "/moved");
  CHECK(directory->write("perf-1.map", "1000 10 f\n"));
  CHECK(write_manifest(*directory, {}, {}));
  CHECK(test::read_file(scratch / "moved/perf-1.map") == "1000 10 f\n");
  CHECK(std::filesystem::exists(scratch / "moved/recording.json"));
  directory->discard();
  CHECK_FALSE(std::filesystem::exists(scratch / "moved/perf.data"));
  const std::vector<std::string> files = {"perf.data", "recording.json", "perf-1.map"};
  CHECK_FALSE(directory->remove(files));
  CHECK(std::filesystem::is_symlink(scratch / "rec"));
  CHECK(std::filesystem::is_empty(scratch / "moved"));
  CHECK(test::read_file(scratch / "victim/perf.data") == "mine");
  CHECK(test::read_file(scratch / "victim/recording.json") == "mine");
}

TEST_CASE("every user can read the settings of a runtime, and write where it writes", "[record]") {
  const Scratch scratch;
  const Result<RecordingDirectory> recording = RecordingDirectory::create(scratch / "rec");
  REQUIRE(recording);
  const mode_t umask_before = ::umask(0077);
  RuntimeDirectory runtime(*recording, scratch.path());
  NamingPlan plan;
  REQUIRE(runtime.create(plan));
  CHECK_FALSE(std::filesystem::exists(runtime.path()));
  plan.ini = "a=1\n";
  plan.writes_to_directory = true;
  REQUIRE(runtime.create(plan));
  ::umask(umask_before);
  const std::string top = runtime.path().substr(0, runtime.path().rfind('/'));
  const bool is_apart = ::geteuid() == 0 && can_map_code_in(scratch.path());
  CHECK(top.starts_with((scratch / (is_apart ? "perfmap-" : "rec/runtime"))));
  CHECK(mode_of(top) == 0711);
  CHECK(mode_of(runtime.path()) == 0711);
  CHECK(mode_of(runtime.path() + "/ini") == 0755);
  CHECK(mode_of(runtime.path() + "/ini/perfmap.ini") == 0644);
  CHECK(test::read_file(runtime.path() + "/ini/perfmap.ini") == "a=1\n");
  CHECK(mode_of(runtime.written()) == 01733);
  // The name of another one is another.
  const RuntimeDirectory other(*recording, scratch.path());
  CHECK(other.path() != runtime.path());
  runtime.remove();
  CHECK_FALSE(std::filesystem::exists(top));
}

TEST_CASE("the directory of a runtime does not replace a planted one", "[record]") {
  const Scratch scratch;
  const Result<RecordingDirectory> recording = RecordingDirectory::create(scratch / "rec");
  REQUIRE(recording);
  NamingPlan plan;
  plan.writes_to_directory = true;
  RuntimeDirectory runtime(*recording, scratch.path());
  const std::string top = runtime.path().substr(0, runtime.path().rfind('/'));
  std::filesystem::create_directory(scratch / "elsewhere");
  std::filesystem::create_directory_symlink(scratch / "elsewhere", top);
  CHECK_FALSE(runtime.create(plan));
  runtime.remove();
  CHECK(std::filesystem::is_empty(scratch / "elsewhere"));
  CHECK(std::filesystem::is_symlink(top));
}

TEST_CASE("the files of a description are read back", "[record]") {
  const Scratch scratch;
  const Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  const std::vector<KeptFile> files = {
      {.name = "perf-7.map", .source = "/tmp/perf-1.map", .pid = 7, .is_dump = false, .size = 1},
      {.name = "jit-\xff.dump", .source = "/tmp/jit-\xff.dump", .pid = 8, .is_dump = true}};
  const std::vector<RecordedModule> modules = {
      {"elf-00ff", "/bin/a\xff", std::string("\0\xff", 2), 5}};
  const std::vector<MissingFile> missing = {{"/tmp/perf-9.map", 9, "no space"}};
  REQUIRE(write_manifest(*directory, {.command = {"a\n\"b"}, .missing = missing}, files, modules));
  CHECK(mode_of(scratch / "rec/recording.json") == 0600);
  const auto read = parse_recorded_files(test::read_file(scratch / "rec/recording.json"));
  REQUIRE(read);
  CHECK(*read == std::vector<RecordedFile>{{"perf-7.map", 7, false}, {"jit-\xff.dump", 8, true}});
  const auto copies = parse_recorded_modules(test::read_file(scratch / "rec/recording.json"));
  REQUIRE(copies);
  CHECK(*copies == modules);
  const auto absent = parse_missing_files(test::read_file(scratch / "rec/recording.json"));
  REQUIRE(absent);
  CHECK(*absent == missing);
}

TEST_CASE("the free space of a directory is known", "[record]") {
  const test::Scratch scratch;
  CHECK(free_bytes_in(scratch.path()));
  CHECK_FALSE(free_bytes_in("/proc"));  // of no size
  CHECK_FALSE(free_bytes_in(scratch.path() + "/none"));
}

}  // namespace perfmap::recording_directory_test
