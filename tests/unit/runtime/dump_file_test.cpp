// How a process comes to a dump of its own.

#include "writer/dump_file.hpp"

#include <cerrno>
#include <string>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap {

TEST_CASE("a dump that a child goes on with is taken by it, as its parent's is", "[jitdump]") {
  const test::Scratch scratch;
  const std::string parents =
      scratch.write("jit-1.dump", test::DumpBytes().header().load(1, 0x1000, "f", "cc").text());
  const std::string own = scratch / ("jit-" + std::to_string(::getpid()) + ".dump");
  RecordFile file;
  REQUIRE(file.open(parents, true) == 0);
  REQUIRE(file.lock() == 0);
  const auto start = inherit_own_dump(file, own, false);
  REQUIRE(start);
  CHECK(start->was_made);
  CHECK(start->pid == ::getpid());
  CHECK(file.size() == test::read_file(own).size());
  RecordFile other;
  REQUIRE(other.open(own, true) == 0);
  CHECK(other.lock() == EBUSY);
  file.unlock();
  CHECK(other.lock() == 0);
}

}  // namespace perfmap
