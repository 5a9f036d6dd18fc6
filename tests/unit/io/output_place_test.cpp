// SPDX-License-Identifier: MIT
// Where a file is written: which links are followed, and which files are written to.

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/output_file.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::output_place_test {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kOther = 12345;

/// Where `path` leads: the directory's own path, and the name.
std::string place_of(const std::string& path,
                     OutputPlace::Last last = OutputPlace::Last::followed) {
  const Result<OutputPlace> place = OutputPlace::find(path, last);
  if (!place) return place.error().message();
  return fs::read_symlink("/proc/self/fd/" + std::to_string(place->directory())).string() + "/" +
         place->name() + (place->existing() != nullptr ? "" : " (new)");
}

}  // namespace

TEST_CASE("a place is the directory and the name that a path leads to", "[output]") {
  const test::Scratch directory;
  directory.write("a/b/file", "");
  fs::create_symlink("b", directory / "a/link");
  fs::create_symlink(directory / "a/b", directory / "absolute");
  fs::create_symlink("link/../b/file", directory / "a/far");
  fs::create_symlink("nothing", directory / "a/dangling");
  const std::string file = directory / "a/b/file";
  CHECK(place_of(directory / "a/b/file") == file);
  CHECK(place_of(directory / "a//./link/../../a/b/file") == directory / "a/b/file");
  CHECK(place_of(directory / "a/link/file") == file);
  CHECK(place_of(directory / "absolute/file") == file);
  CHECK(place_of(directory / "a/far") == file);
  CHECK(place_of(directory / "a/far", OutputPlace::Last::kept) == directory / "a/far");
  CHECK(place_of(directory / "a/dangling") == directory / "a/nothing (new)");
  CHECK(place_of(directory / "new") == directory / "new (new)");
}

TEST_CASE("a path that leads to no place is an error", "[output]") {
  const test::Scratch directory;
  const std::string file = directory.write("file", "");
  fs::create_symlink("loop", directory / "loop");
  CHECK(place_of("").ends_with("No such file or directory"));
  CHECK(place_of(directory / "missing/x").ends_with("No such file or directory"));
  CHECK(place_of(file + "/x").ends_with("Not a directory"));
  CHECK(place_of(directory / "loop").ends_with("Too many levels of symbolic links"));
  CHECK(place_of(directory / "").ends_with("Is a directory"));
  CHECK(place_of("/").ends_with("Is a directory"));
}

TEST_CASE("the kernel's links to pipes and files lead where they say", "[output]") {
  const test::Scratch directory;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto pipe = OutputPlace::find("/proc/self/fd/" + std::to_string(ends[1]));
  REQUIRE(pipe);
  const Result<int> fd = pipe->open_existing();
  REQUIRE(fd);
  CHECK(::write(*fd, "x", 1) == 1);
  char byte = 0;
  CHECK(::read(ends[0], &byte, 1) == 1);
  const std::string file = directory.write("file", "");
  const int opened = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(place_of("/proc/self/fd/" + std::to_string(opened)) == file);
  for (const int one : {ends[0], ends[1], *fd, opened}) ::close(one);
}

TEST_CASE("what others may have planted in a shared directory is not used", "[output][hostile]") {
  const test::Scratch directory;
  const std::string shared = directory / "shared";
  fs::create_directory(shared);
  const std::string link = directory / "shared/link";
  const std::string file = directory.write("shared/file", "");
  fs::create_symlink("target", link);
  const std::string to_theirs = directory / "shared/theirs";
  fs::create_symlink("file", to_theirs);
  if (::lchown(link.c_str(), kOther, kOther) != 0 ||
      ::lchown(to_theirs.c_str(), kOther, kOther) != 0 ||
      ::chown(file.c_str(), kOther, kOther) != 0) {
    test::skip("only root can make links of other users");
    return;
  }
  struct Case {
    mode_t mode;
    uid_t owner;
    bool is_shared;
  };
  for (const auto& [mode, owner, is_shared] :
       {Case{01777, 0, true}, Case{01770, 0, true}, Case{01772, 0, true}, Case{0777, 0, false},
        Case{01755, 0, false}, Case{01777, kOther, false}}) {
    CAPTURE(mode, owner);
    REQUIRE(::chmod(shared.c_str(), mode) == 0);
    REQUIRE(::chown(shared.c_str(), owner, owner) == 0);
    CHECK(OutputPlace::find(to_theirs).has_value() == !is_shared);
    // It does not lead to a file of that user, whatever the directory.
    CHECK(OutputPlace::find(link).error().code == Errc::refused);
    CHECK(OutputPlace::find(link + "/x").error().code ==
          (is_shared ? Errc::refused : Errc::not_found));
    // The link itself may be replaced by a name of ours.
    CHECK(OutputPlace::find(link, OutputPlace::Last::kept));
    Result<OutputPlace> place = OutputPlace::find(file);
    REQUIRE(place);
    CHECK(place->check_existing().has_value() == !is_shared);
    CHECK(place->open_existing().has_value() == !is_shared);
    CHECK(place->path_for_appending().has_value() == !is_shared);
    CHECK(OutputFile::replace(file).has_value() == !is_shared);
    // Our own are used in any directory.
    REQUIRE(::lchown(link.c_str(), ::geteuid(), 0) == 0);
    CHECK(OutputPlace::find(link));
    REQUIRE(::lchown(link.c_str(), kOther, kOther) == 0);
  }
}

TEST_CASE("a path for appending leads to the checked file, whatever its name leads to later",
          "[output][hostile]") {
  const test::Scratch directory;
  Result<OutputPlace> place = OutputPlace::find(directory / "new");
  REQUIRE(place);
  const Result<std::string> path = place->path_for_appending();
  REQUIRE(path);
  fs::rename(directory / "new", directory / "moved");
  fs::create_symlink("victim", directory / "new");
  const int fd = ::open(path->c_str(), O_WRONLY | O_APPEND);
  REQUIRE(fd >= 0);
  CHECK(::write(fd, "text", 4) == 4);
  ::close(fd);
  CHECK(test::read_file(directory / "moved") == "text");
  CHECK(!fs::exists(directory / "victim"));
}

TEST_CASE("the directory of an output is the checked one, whatever its path leads to later",
          "[output][hostile]") {
  const test::Scratch directory;
  fs::create_directory(directory / "right");
  fs::create_directory(directory / "wrong");
  Result<OutputFile> out = OutputFile::replace(directory / "right/file");
  REQUIRE(out);
  fs::rename(directory / "right", directory / "moved");
  fs::create_symlink("wrong", directory / "right");
  out->write("text");
  REQUIRE(out->commit());
  CHECK(test::read_file(directory / "moved/file") == "text");
  CHECK(fs::is_empty(directory / "wrong"));
}

}  // namespace perfmap::output_place_test
