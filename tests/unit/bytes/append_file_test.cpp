// What a map takes over from another one.

#include "bytes/append_file.hpp"

#include <cerrno>
#include <fcntl.h>

#include "bytes/descriptor.hpp"
#include "bytes/mapped_tail.hpp"
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
