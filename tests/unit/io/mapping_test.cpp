// SPDX-License-Identifier: MIT
#include "io/mapping.hpp"

#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::mapping_test {
namespace {

bool is_mapped(const std::string& path) {
  std::ostringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find(path) != std::string::npos;
}

}  // namespace

TEST_CASE("a file stays mapped while its mapping lives, also after a move", "[input]") {
  const test::Scratch scratch;
  const std::string path = scratch.write("file", "text");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  {
    Mapping first(file.get(), 4);
    REQUIRE(first.mapped());
    CHECK(first.text() == "text");
    CHECK(is_mapped(path));
    Mapping second = std::move(first);
    CHECK(second.text() == "text");
    CHECK_FALSE(first.mapped());
    first = Mapping();
    CHECK(is_mapped(path));
    second = Mapping();
    CHECK_FALSE(is_mapped(path));
    second = Mapping(file.get(), 4);
    CHECK(is_mapped(path));
  }
  CHECK_FALSE(is_mapped(path));
}

}  // namespace perfmap::mapping_test
