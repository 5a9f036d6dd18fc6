// SPDX-License-Identifier: MIT
// The jitdump writer with many threads, killed, out of room, and interrupted by signals.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::Contents;
using test::contents_of;
using test::function_of;
using test::name_of;
using test::quiet;
using test::Scratch;
using test::Seen;
using test::wait_for;

}  // namespace

TEST_CASE("threads: records of a function stay together, and times ascend",
          "[writer][jitdump][tsan]") {
  const Scratch scratch;
  constexpr int kThreads = 6;
  constexpr int kEach = 300;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer);
  std::vector<std::thread> threads;
  std::atomic<bool> good{true};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string file = "file" + std::to_string(t);
      const std::vector<LineRecord> lines = {{0x1000, t, 0, file, false}};
      for (int i = 0; i < kEach; ++i) {
        const std::string name = name_of(t, i);
        JitFunction function = function_of(name);
        function.lines = lines;
        function.unwinding = {"frame", "header", 0};
        if (!writer->load(function)) good = false;
        if (i % 10 == 0 && !writer->move(1, 0x1000, 0x2000, 4)) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good);
  const Contents contents = contents_of(scratch / "x.dump");
  CHECK(contents.lost == 0);
  std::set<std::uint64_t> indexes;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < contents.records.size(); ++i) {
    const Seen& seen = contents.records[i];
    REQUIRE(seen.time >= last);
    last = seen.time;
    if (seen.kind != JitRecordKind::debug_info) continue;
    REQUIRE(contents.records.at(i + 1).kind == JitRecordKind::unwinding_info);
    REQUIRE(contents.records.at(i + 2).kind == JitRecordKind::load);
    CHECK(indexes.insert(contents.records[i + 2].index).second);
  }
  CHECK(indexes.size() == kThreads * kEach);
}

TEST_CASE("a function whose load returned survives SIGKILL", "[writer][jitdump]") {
  const Scratch scratch;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
    for (int i = 0; writer && writer->load(function_of(name_of(0, i))); ++i) {
      if (::write(ends[1], &i, sizeof i) != sizeof i) break;
    }
    ::_exit(1);
  }
  ::close(ends[1]);
  int last = -1;
  for (int i = 0; i < 300; ++i) REQUIRE(::read(ends[0], &last, sizeof last) > 0);
  ::kill(child, SIGKILL);
  CHECK(WIFSIGNALED(wait_for(child)));
  while (::read(ends[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
  }
  ::close(ends[0]);
  const std::vector<std::string> names = contents_of(scratch / "x.dump").names();
  REQUIRE(names.size() > static_cast<std::size_t>(last));
  for (int i = 0; i <= last; ++i) {
    REQUIRE(names[static_cast<std::size_t>(i)] == name_of(0, i));
  }
}

namespace {

/// Writes until it fails, calls `make_room`, and writes once more. Returns how many were written,
/// or a negative number.
template <class MakeRoom>
int fill(JitdumpWriter& writer, int error, MakeRoom make_room) {
  for (int written = 0; written < 10'000; ++written) {
    const std::string name = name_of(0, written);
    JitFunction function = function_of(name);
    const std::vector<LineRecord> lines = {{0x1000, 1, 0, "file", false}};
    function.lines = lines;
    const auto result = writer.load(function);
    if (result) continue;
    if (result.error().sys_errno != error) return -1;
    make_room();
    return writer.load(function) ? written + 1 : -2;
  }
  return -3;
}

/// No record is truncated or lost, and no DEBUG_INFO is without its LOAD.
void check_filled(const std::string& path, int written) {
  const Contents contents = contents_of(path);
  CHECK(contents.lost == 0);
  REQUIRE(written > 3);
  REQUIRE(contents.records.size() == 2 * static_cast<std::size_t>(written));
  for (int i = 0; i < written; ++i) {
    const Seen& load = contents.records[2 * static_cast<std::size_t>(i) + 1];
    CHECK(load.name == name_of(0, i));
    CHECK(load.index == static_cast<std::uint64_t>(i) + 1);
  }
}

}  // namespace

TEST_CASE("at the file size limit a function leaves no partial records, and the next one is whole",
          "[writer][jitdump]") {
  const Scratch scratch;
  for (const rlim_t limit : {2000u, 2033u, 2100u, 2177u, 2222u}) {
    const std::string path = scratch / ("limited" + std::to_string(limit));
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit low{limit, RLIM_INFINITY};
      const rlimit high{RLIM_INFINITY, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &low);
      auto writer = JitdumpWriter::open(path, quiet());
      if (!writer) ::_exit(255);
      ::_exit(fill(*writer, EFBIG, [&] { ::setrlimit(RLIMIT_FSIZE, &high); }));
    }
    const int status = wait_for(child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) < 100);
    check_filled(path, WEXITSTATUS(status));
  }
}

TEST_CASE("on a full disk a function leaves no partial records, and the next one is whole",
          "[writer][jitdump]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    test::skip("no small tmpfs may be mounted here");
    return;
  }
  {
    const std::string room = scratch.write("disk/room", std::string(5000, 'x'));
    auto writer = JitdumpWriter::open(disk + "/x.dump", quiet());
    REQUIRE(writer);
    const int written = fill(*writer, ENOSPC, [&] { ::unlink(room.c_str()); });
    check_filled(disk + "/x.dump", written);
    const std::string rest = scratch.write("disk/rest", std::string(20000, 'x'));
    CHECK(JitdumpWriter::open(disk + "/y.dump", quiet()).error().sys_errno == ENOSPC);
    CHECK(::access((disk + "/y.dump").c_str(), F_OK) != 0);
  }
  ::umount(disk.c_str());
}

TEST_CASE("ENOSPC from a device is reported with its path", "[writer][jitdump]") {
  const auto writer = JitdumpWriter::open("/dev/full", quiet());
  REQUIRE(!writer);
  CHECK(writer.error().sys_errno == ENOSPC);
  CHECK(writer.error().message().find("/dev/full") != std::string::npos);
}

TEST_CASE("unreadable code is EFAULT, and no part of its record stays", "[writer][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "x.dump";
  auto* const pages =
      static_cast<char*>(::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(::mprotect(pages + 4096, 4096, PROT_NONE) == 0);
  auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(writer->load(function_of("good")));
  const auto failed =
      writer->load({.start = 0x1000, .size = 8192, .name = "bad", .code = {pages, 8192}});
  REQUIRE(!failed);
  CHECK(failed.error().sys_errno == EFAULT);
  REQUIRE(writer->load(function_of("good again")));
  CHECK(contents_of(path).names() == std::vector<std::string>{"good", "good again"});
  CHECK(contents_of(path).lost == 0);
  ::munmap(pages, 8192);
}

TEST_CASE("nothing is written after an incomplete record that cannot be cut off",
          "[writer][jitdump]") {
  const int fd = ::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fd >= 0);
  REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = JitdumpWriter::open(path, quiet());
    if (!writer || !writer->load(function_of("good"))) ::_exit(1);
    const rlimit low{300, RLIM_INFINITY};
    const rlimit high{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &low);
    if (writer->load(function_of(std::string(200, 'n'))).error().sys_errno != EFBIG) ::_exit(2);
    ::setrlimit(RLIMIT_FSIZE, &high);
    const auto next = writer->load(function_of("next"));
    ::_exit(!next && next.error().sys_errno == EIO ? 0 : 3);
  }
  CHECK(wait_for(child) == 0);
  const Contents contents = contents_of(path);
  CHECK(contents.names() == std::vector<std::string>{"good"});
  CHECK(contents.lost != 0);
  ::close(fd);
}

TEST_CASE("signals during writes of a dump lose no record", "[writer][jitdump]") {
  const Scratch scratch;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  // A write to a pipe is short if a signal arrives while it waits for room.
  std::string read;
  std::thread reader([&] {
    // The thread that writes must get the signals.
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    char block[512];
    for (;;) {
      const ssize_t got = ::read(ends[0], block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      read.append(block, static_cast<std::size_t>(got));
    }
  });
  const itimerval often{{0, 200}, {0, 200}};
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  int written = 0;
  {
    auto writer = JitdumpWriter::to_descriptor(ends[1], "pipe", quiet());
    ::close(ends[1]);
    REQUIRE(writer);
    for (int i = 0; i < 2000; ++i) written += writer->load(function_of(name_of(1, i))) ? 1 : 0;
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  reader.join();
  ::close(ends[0]);
  CHECK(written == 2000);
  const Contents contents = contents_of(scratch.write("read.dump", read));
  CHECK(contents.names().size() == 2000);
  CHECK(contents.lost == 0);
}

TEST_CASE("a dump does not grow beyond its size limit", "[writer][jitdump]") {
  const Scratch scratch;
  JitdumpOptions options = quiet();
  options.max_bytes = 200;
  auto writer = JitdumpWriter::open(scratch / "x.dump", options);
  REQUIRE(writer->load(function_of("one")));
  CHECK(writer->load(function_of("two")).error().sys_errno == EFBIG);
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"one"});
}

}  // namespace perfmap
