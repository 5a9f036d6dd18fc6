// SPDX-License-Identifier: MIT
// MapWriter::copy() into a map that another process writes to, that is at its size limit, or that
// has no room left.

#include <cerrno>
#include <fstream>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::lines_of;
using test::read_file;
using test::Scratch;
using test::wait_for;

constexpr std::size_t kBlock = 262144;

/// Lines of various lengths, so that hardly any block ends at the end of a line.
std::string some_lines(std::size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) {
    text += "1000 10 copied " + std::string(static_cast<std::size_t>(i % 97), 'c') + "\n";
  }
  return text;
}

void limit_file_size(rlim_t max) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{max, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

TEST_CASE("entries that another process appends during a copy stay whole lines", "[writer]") {
  const Scratch scratch;
  const std::string source = scratch / "source.map";
  const std::string target = scratch / "target.map";
  std::ofstream(source) << some_lines(kBlock * 3);
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = MapWriter::open(target);
    bool good = writer.has_value();
    for (int i = 0; i < 20; ++i) good = good && writer->copy(source);
    ::_exit(good ? 0 : 1);
  }
  auto writer = MapWriter::open(target);
  REQUIRE(writer);
  std::size_t written = 0;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!writer->write(0x2000, 0x10, "ours")) break;
    ++written;
  }
  REQUIRE(status == 0);
  std::size_t ours = 0;
  std::size_t copied = 0;
  for (const std::string& line : lines_of(read_file(target))) {
    if (line == "2000 10 ours") ++ours;
    if (line.starts_with("1000 10 copied ") && line.find_first_not_of('c', 15) == line.npos) {
      ++copied;
    }
  }
  CHECK(ours == written);
  CHECK(copied == 20 * lines_of(read_file(source)).size());
}

TEST_CASE("a copy that would exceed the size limit writes nothing", "[writer]") {
  const Scratch scratch;
  std::ofstream(scratch / "source.map") << "1000 10 one\n2000 10 two\n";
  auto writer = MapWriter::open(scratch / "target.map", {.max_bytes = 30});
  REQUIRE(writer);
  REQUIRE(writer->copy(scratch / "source.map"));
  const Result<void> again = writer->copy(scratch / "source.map");
  REQUIRE(!again);
  CHECK(again.error().sys_errno == EFBIG);
  CHECK(read_file(scratch / "target.map") == "1000 10 one\n2000 10 two\n");
}

TEST_CASE("a copy that runs out of room ends after a whole line", "[writer]") {
  const Scratch scratch;
  const std::string text = some_lines(kBlock * 3);
  std::ofstream(scratch / "source.map") << text;
  const pid_t child = ::fork();
  if (child == 0) {
    limit_file_size(kBlock + kBlock / 2);
    auto writer = MapWriter::open(scratch / "target.map");
    ::_exit(writer && !writer->copy(scratch / "source.map") ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  const std::string found = read_file(scratch / "target.map");
  REQUIRE(!found.empty());
  CHECK(found.back() == '\n');
  CHECK(text.starts_with(found));
}

TEST_CASE("an entry after a partly copied long line starts on a new line", "[writer]") {
  const Scratch scratch;
  std::ofstream(scratch / "source.map") << std::string(kBlock * 2, 'x') << '\n';
  const pid_t child = ::fork();
  if (child == 0) {
    limit_file_size(kBlock + 1000);
    auto writer = MapWriter::open(scratch / "target.map");
    const bool refused = writer && !writer->copy(scratch / "source.map");
    limit_file_size(RLIM_INFINITY);
    ::_exit(refused && writer->write(0x10, 1, "next") ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_file(scratch / "target.map") == std::string(kBlock, 'x') + "\n10 1 next\n");
}

}  // namespace perfmap
