// What a map takes over from another one.

#include "bytes/append_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>

#include "bytes/descriptor.hpp"
#include "bytes/mapped_tail.hpp"
#include "bytes/whole_file.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

std::uint64_t size_of(const test::Scratch& scratch, const std::string& text) {
  const std::string path = scratch.write("filled.map", text);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return size_without_filler(file.get(), text.size());
}

}  // namespace

TEST_CASE("a directory is told from other things that no map is copied from", "[append]") {
  const test::Scratch scratch;
  AppendFile file;
  REQUIRE(file.open((scratch / "own.map").c_str(), true) == 0);
  CHECK(file.copy_from((scratch / ".").c_str(), false, 0) == EISDIR);
  CHECK(file.copy_from("/dev/null", false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "own.map").c_str(), false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "none.map").c_str(), false, 0) == ENOENT);
}

TEST_CASE("a file that is to appear whole has no name before", "[append]") {
  const test::Scratch scratch;
  const std::string folder = scratch / "folder";
  std::filesystem::create_directory(folder);
  if (!Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)).is_open()) {
    WARN("skipped: this file system has no files without a name");
    return;
  }
  const std::string path = folder + "/whole.map";
  WholeFile whole;
  REQUIRE(whole.create(path.c_str()) == 0);
  CHECK(std::filesystem::is_empty(folder));
  REQUIRE(whole.append("1000 10 f\n") == 0);
  REQUIRE(whole.publish() == 0);
  CHECK(test::read_file(path) == "1000 10 f\n");
}

TEST_CASE("a map ends where its filler begins, however much of that there is", "[append]") {
  const test::Scratch scratch;
  const std::string entries = "1000 10 first\n2000 10 second\n";
  for (const std::size_t dots : {std::size_t{3}, std::size_t{60}, std::size_t{5000}}) {
    const std::string line = "0 0 " + std::string(dots, '.') + "\n";
    std::string filler;
    for (int count = 0; count < 100; ++count) {
      CAPTURE(dots, count);
      REQUIRE(size_of(scratch, entries + filler) == entries.size());
      filler += line;
    }
    REQUIRE(size_of(scratch, filler) == 0);
  }
}

}  // namespace perfmap
