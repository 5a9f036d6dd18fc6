// SPDX-License-Identifier: MIT
// Non-blocking pipes that accept only a part of a write.

#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"

namespace perfmap {

TEST_CASE("entries that a full pipe does not accept are written later, once", "[writer]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0);
  auto writer = MapWriter::to_descriptor(ends[1], "pipe", {.buffer_bytes = 30'000});
  REQUIRE(writer);
  std::string expected;
  for (int i = 0; i < 600; ++i) {
    const std::string name = "entry " + std::to_string(i);
    REQUIRE(writer->write(0x1000, 0x10, name));
    expected += "1000 10 " + name + "\n";
  }
  std::string found;
  char block[3000];
  while (found.size() < expected.size()) {
    const bool all = writer->flush().has_value();
    const ssize_t got = ::read(ends[0], block, sizeof block);
    if (got > 0) found.append(block, static_cast<std::size_t>(got));
    if (all && got <= 0) break;
  }
  CHECK(found == expected);
  CHECK(writer->close());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("with flush_after_ns, an entry that a pipe accepts in two parts is whole", "[writer]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0);
  auto writer =
      MapWriter::to_descriptor(ends[1], "pipe", {.buffer_bytes = 100'000, .flush_after_ns = 1});
  REQUIRE(writer);
  std::string expected;
  std::string found;
  char block[700];
  const auto take = [&] {
    const ssize_t got = ::read(ends[0], block, sizeof block);
    if (got > 0) found.append(block, static_cast<std::size_t>(got));
    return got > 0;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string name =
        "entry " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 97), 'x');
    if (writer->write(0x1000, 0x10, name)) expected += "1000 10 " + name + "\n";
    if (i % 16 == 0) take();
  }
  while (!writer->flush()) take();
  while (take()) {
  }
  CHECK(found == expected);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace perfmap
