// SPDX-License-Identifier: MIT
// Opening a jitdump: existing files, refused files, and children.

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::Contents;
using test::contents_of;
using test::DumpBytes;
using test::function_of;
using test::kCode;
using test::lines_of;
using test::now;
using test::quiet;
using test::read_file;
using test::Scratch;
using test::wait_for;

std::string own_name(pid_t pid) { return "jit-" + std::to_string(pid) + ".dump"; }
std::string own_path(const Scratch& scratch) { return scratch / own_name(::getpid()); }

/// "…-r-xp … PATH" in /proc/self/maps.
bool is_mapped_for_execution(const std::string& path) {
  for (const std::string& line : lines_of(read_file("/proc/self/maps"))) {
    if (line.ends_with(path) && line.find(" r-xp ") != line.npos) return true;
  }
  return false;
}

void sets_time_back(const std::string& path) {
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("own dump: it has mode 0600, the name that perf expects, and an executable mapping",
          "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = own_path(scratch);
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  CHECK(writer->path() == path);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(is_mapped_for_execution(path));
  const std::uint64_t before = now();
  REQUIRE(writer->load(function_of("function")));
  REQUIRE(writer->close());
  CHECK(!is_mapped_for_execution(path));
  CHECK(writer->load(function_of("late")).error().sys_errno == EBADF);
  const Contents contents = contents_of(path);
  CHECK(contents.header->pid == static_cast<std::uint32_t>(::getpid()));
  REQUIRE(contents.records.size() == 2);
  CHECK(contents.records[0].time >= before);
  CHECK(contents.records[0].tid == static_cast<std::uint32_t>(::gettid()));
  CHECK(contents.records[0].code == kCode);
  CHECK(contents.records[1].kind == JitRecordKind::close);
}

TEST_CASE("a dump's descriptor is closed on exec", "[writer][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  int found = 0;
  for (int fd = 3; fd < 64; ++fd) {
    char name[256] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), name, sizeof name - 1) < 0) continue;
    if (std::string_view(name) != writer->path()) continue;
    ++found;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(found == 1);
}

TEST_CASE("a process that opens its dump again appends to it", "[writer][jitdump]") {
  const Scratch scratch;
  for (int round = 1; round <= 3; ++round) {
    auto writer = JitdumpWriter::open_own(scratch.path());
    REQUIRE(writer);
    CHECK(writer->load(function_of("function")).value() == static_cast<std::uint64_t>(round));
  }
  const Contents contents = contents_of(own_path(scratch));
  CHECK(contents.lost == 0);
  REQUIRE(contents.records.size() == 4);  // one CLOSE, at the end
  CHECK(contents.records[3].kind == JitRecordKind::close);
}

TEST_CASE("the dump of a former process with the same pid is replaced, not truncated",
          "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = own_path(scratch);
  const auto stale = GENERATE(as<std::string>(), "", "no dump at all",
                              DumpBytes().header({.pid = 7}).load(1, 2, "old", "code").text());
  scratch.write(own_name(::getpid()), stale);
  sets_time_back(path);
  const int reader = ::open(path.c_str(), O_RDONLY);
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  REQUIRE(writer->load(function_of("new")));
  CHECK(contents_of(path).names() == std::vector<std::string>{"new"});
  struct stat status {};
  REQUIRE(::fstat(reader, &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(stale.size()));
  ::close(reader);
}

TEST_CASE("a dump that another engine in this process writes is refused and unchanged",
          "[writer][jitdump]") {
  const Scratch scratch;
  // As CPython writes them: a wall-clock time in microseconds, or nothing yet.
  const auto text = GENERATE(as<std::string>(), "", "DTiJ",
                             DumpBytes().header({.timestamp = 1'700'000'000'000'000}).text());
  const std::string path = scratch.write(own_name(::getpid()), text);
  const auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(!writer);
  CHECK(writer.error().sys_errno == EBUSY);
  CHECK(read_file(path) == text);
}

TEST_CASE("a dump has one writer at a time", "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = own_path(scratch);
  auto own = JitdumpWriter::open_own(scratch.path());
  REQUIRE(own);
  const auto again = JitdumpWriter::open_own(scratch.path());
  REQUIRE(!again);
  CHECK(again.error().sys_errno == EBUSY);
  const auto by_path = JitdumpWriter::open(path, quiet());
  REQUIRE(!by_path);
  CHECK(by_path.error().sys_errno == EBUSY);
  REQUIRE(own->close());
  CHECK(JitdumpWriter::open(path, {.marker = false}));
}

TEST_CASE("own dump: links, directories, FIFOs and other users' files are refused",
          "[writer][jitdump]") {
  const Scratch scratch;
  const std::string victim = scratch.write("victim", "precious");
  const std::string path = own_path(scratch);
  REQUIRE(::symlink(victim.c_str(), path.c_str()) == 0);
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == ELOOP);
  CHECK(JitdumpWriter::open(path, {.own_dump = true}).error().sys_errno == ELOOP);
  CHECK(JitdumpWriter::open(path).error().code == Errc::bad_format);  // follows the link
  CHECK(read_file(victim) == "precious");
  ::unlink(path.c_str());
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  CHECK(!JitdumpWriter::open_own(scratch.path()));
  ::rmdir(path.c_str());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == EINVAL);
  ::unlink(path.c_str());
  scratch.write(own_name(::getpid()), "theirs");
  if (::chown(path.c_str(), 12345, 12345) != 0) {
    test::skip_part("this user cannot give files away");
    return;
  }
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == EPERM);
  CHECK(read_file(path) == "theirs");
}

TEST_CASE("a dump opened by path is continued after its last whole record", "[writer][jitdump]") {
  const Scratch scratch;
  const std::string whole =
      DumpBytes().header().load(1, 0x1000, "one", "code", 7).move(2, 1, 2, 3, 9).text();
  const auto tail = GENERATE(as<std::string>(), "", DumpBytes().close(3).text(),
                             DumpBytes().load(3, 4, "torn", "code").text().substr(0, 60));
  const std::string path = scratch.write("any name", whole + tail);
  auto writer = JitdumpWriter::open(path, {.marker = false, .close_record = false});
  REQUIRE(writer);
  CHECK(writer->load(function_of("two")).value() == 10);
  const Contents contents = contents_of(path);
  CHECK(contents.lost == 0);
  CHECK(contents.names() == std::vector<std::string>{"one", "two"});
  CHECK(read_file(path).starts_with(whole));
}

TEST_CASE("files in another format, or dumps that we could not continue, are refused and unchanged",
          "[writer][jitdump]") {
  const Scratch scratch;
  const auto text = GENERATE(
      as<std::string>(), "1000 10 a perf map\n", "DTiJ", DumpBytes().header({.flags = 1}).text(),
      DumpBytes().header({.version = 2}).text(), DumpBytes().header({.total_size = 400}).text(),
      DumpBytes().header({.pid = 43}).text(), DumpBytes(std::endian::big).header().text());
  const std::string path = scratch.write("x", text);
  const auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(!writer);
  CHECK(writer.error().code == Errc::bad_format);
  CHECK(read_file(path) == text);
}

TEST_CASE("a child writes a dump of its own, and its parent's does not change",
          "[writer][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer->load(function_of("parent")));
  const std::string before = read_file(own_path(scratch));
  const pid_t child = ::fork();
  if (child == 0) {
    if (!writer->load(function_of("child"))) ::_exit(1);
    if (is_mapped_for_execution(own_name(::getppid()))) ::_exit(2);
    if (!is_mapped_for_execution(own_name(::getpid()))) ::_exit(3);
    ::_exit(writer->close() ? 0 : 4);
  }
  const pid_t idle = ::fork();
  if (idle == 0) ::_exit(writer->close() ? 0 : 1);
  CHECK(wait_for(child) == 0);
  CHECK(wait_for(idle) == 0);
  CHECK(read_file(own_path(scratch)) == before);
  CHECK(::access((scratch / own_name(idle)).c_str(), F_OK) != 0);
  const Contents contents = contents_of(scratch / own_name(child));
  CHECK(contents.header->pid == static_cast<std::uint32_t>(child));
  CHECK(contents.names() == std::vector<std::string>{"child"});
  CHECK(contents.records[0].tid == static_cast<std::uint32_t>(child));
  // The indices go on, so that those of the parent do not mean code of the child.
  CHECK(contents.records[0].index == 2);
  CHECK(writer->load(function_of("parent again")).value() == 2);
}

TEST_CASE("a child cannot write a dump that was opened by its path", "[writer][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", {.pid = 42});
  const pid_t child = ::fork();
  if (child == 0) {
    const auto result = writer->load(function_of("child"));
    ::_exit(!result && result.error().sys_errno == EBADF && writer->close() ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  REQUIRE(writer->load(function_of("parent")));
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"parent"});
}

}  // namespace perfmap
