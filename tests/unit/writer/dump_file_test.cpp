// SPDX-License-Identifier: MIT
// How a process opens and locks its own dump.

#include <cerrno>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "writer/fork_safe_file.hpp"

namespace perfmap::dump_file_test {

TEST_CASE("a child that continues its parent's dump locks its own file", "[jitdump]") {
  const test::Scratch scratch;
  const JitdumpOptions options{.marker = false, .fork = ForkPolicy::inherit};
  auto writer = JitdumpWriter::open_own(scratch / ".", options);
  REQUIRE(writer);
  REQUIRE(writer->load({.start = 0x1000, .size = 2, .name = "fun", .code = "cc"}));
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string own = scratch / ("jit-" + std::to_string(::getpid()) + ".dump");
    AppendFile other;
    if (!writer->load({.start = 0x2000, .size = 2, .name = "more", .code = "cc"})) ::_exit(8);
    int failed = other.open(own.c_str(), AppendFile::Create::never, AppendFile::regular);
    if (other.lock() != EBUSY) failed |= 2;
    if (!writer->close() || other.lock() != 0) failed |= 4;
    ::_exit(failed);
  }
  CHECK(test::wait_for(child) == 0);
}

}  // namespace perfmap::dump_file_test
