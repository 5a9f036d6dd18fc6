// SPDX-License-Identifier: MIT
// The map writer killed, with many threads and processes, out of room, and interrupted by signals.
// All tests check what a reader finds in the file afterwards.

#include "perfmap/writer.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <perfmap.h>
#include <set>
#include <signal.h>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::lines_of;
using test::read_file;
using test::Scratch;
using test::wait_for;

/// "entry 7 of writer 3…": long enough to detect a truncated line.
std::string name_of(int writer, int entry) {
  return "entry " + std::to_string(entry) + " of writer " + std::to_string(writer) +
         std::string(60, '.');
}
std::string line_of(int writer, int entry) { return "1000 10 " + name_of(writer, entry); }

}  // namespace

TEST_CASE("an entry whose write returned survives SIGKILL", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "killed.map";
  std::vector<std::string> acknowledged;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = MapWriter::open(path);
      for (int i = 0; writer && writer->write(0x1000, 0x10, name_of(round, i)); ++i) {
        if (::write(ends[1], &i, sizeof i) != sizeof i) break;
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    int last = -1;
    for (int i = 0; i < 50 + round * 7; ++i) REQUIRE(::read(ends[0], &last, sizeof last) > 0);
    ::kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
    while (::read(ends[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
    }
    ::close(ends[0]);
    for (int i = 0; i <= last; ++i) acknowledged.push_back(line_of(round, i));
  }
  const std::vector<std::string> found = lines_of(read_file(path));
  const std::set<std::string> all(found.begin(), found.end());
  for (const std::string& line : acknowledged) REQUIRE(all.contains(line));
  // A line whose write did not return may be truncated; the next entry starts on a new line.
  for (const std::string& line : found) REQUIRE(line.rfind("1000 10 ") + 1 <= 1);
}

TEST_CASE("eight threads in each of two processes share a file, and all lines are whole",
          "[writer][tsan]") {
  const Scratch scratch;
  const std::string path = scratch / "shared.map";
  constexpr int kEach = 400;
  const auto write_all = [&](int first_writer) {
    auto writer = MapWriter::open(path);
    if (!writer) return false;
    std::vector<std::thread> threads;
    std::atomic<bool> good{true};
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          if (!writer->write(0x1000, 0x10, name_of(first_writer + t, i))) good = false;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return good && writer->close();
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(write_all(100) ? 0 : 1);
  CHECK(write_all(0));
  CHECK(wait_for(child) == 0);
  std::multiset<std::string> expected;
  for (const int first : {0, 100}) {
    for (int t = 0; t < 8; ++t) {
      for (int i = 0; i < kEach; ++i) expected.insert(line_of(first + t, i));
    }
  }
  const std::vector<std::string> found = lines_of(read_file(path));
  CHECK(std::multiset<std::string>(found.begin(), found.end()) == expected);
}

TEST_CASE("at the file size limit a write fails and leaves no incomplete line", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "limited.map";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = MapWriter::open(path);
    int written = 0;
    while (writer && writer->write(0x1000, 0x10, name_of(0, written))) ++written;
    ::_exit(written);
  }
  const int status = wait_for(child);
  REQUIRE(WIFEXITED(status));
  const std::vector<std::string> found = lines_of(read_file(path));
  REQUIRE(found.size() == static_cast<std::size_t>(WEXITSTATUS(status)));
  REQUIRE(found.size() > 5);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == line_of(0, static_cast<int>(i)));
  }
  CHECK(read_file(path).back() == '\n');
}

TEST_CASE("on a full disk a write fails and leaves no incomplete line", "[writer]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    test::skip("no small tmpfs may be mounted here");
    return;
  }
  {
    auto writer = MapWriter::open(disk + "/full.map");
    REQUIRE(writer);
    int written = 0;
    Result<void> result;
    while ((result = writer->write(0x1000, 0x10, name_of(0, written)))) ++written;
    CHECK(result.error().sys_errno == ENOSPC);
    const std::vector<std::string> found = lines_of(read_file(disk + "/full.map"));
    CHECK(found.size() == static_cast<std::size_t>(written));
    CHECK(found.back() == line_of(0, written - 1));
  }
  ::umount(disk.c_str());
}

TEST_CASE("signals during writes lose no entry", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "interrupted.map";
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 200}, {0, 200}};
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  auto writer = MapWriter::open(path);
  REQUIRE(writer);
  int written = 0;
  for (int i = 0; i < 5000; ++i) written += writer->write(0x1000, 0x10, name_of(1, i)) ? 1 : 0;
  ::setitimer(ITIMER_REAL, &never, nullptr);
  CHECK(written == 5000);
  const std::vector<std::string> found = lines_of(read_file(path));
  REQUIRE(found.size() == 5000);
  CHECK(found.back() == line_of(1, 4999));
}

TEST_CASE("copy() appends a source of any size unchanged and ends its last line", "[writer]") {
  const Scratch scratch;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 8192u, 262144u, 300001u}) {
    CAPTURE(size);
    const std::string source = scratch / "source.map";
    const std::string target = scratch / ("target" + std::to_string(size));
    const std::string text(size, 'x');
    std::ofstream(source, std::ios::binary) << text;
    auto writer = MapWriter::open(target);
    REQUIRE(writer);
    REQUIRE(writer->copy(source));
    REQUIRE(writer->write(0x10, 1, "next"));
    CHECK(read_file(target) == text + (size == 0 ? "" : "\n") + "10 1 next\n");
    const Result<void> self = writer->copy(target);
    REQUIRE(!self);
    CHECK(self.error().sys_errno == EINVAL);
  }
}

TEST_CASE("the first entry after an incomplete last line starts on a new line", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "half.map";
  std::ofstream(path) << "1000 10 half a li";
  auto writer = MapWriter::open(path);
  REQUIRE(writer);
  REQUIRE(writer->write(0x2000, 0x10, "whole"));
  CHECK(read_file(path) == "1000 10 half a li\n2000 10 whole\n");
}

TEST_CASE("buffered entries are written by size, by flush() and at the end", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "buffered.map";
  {
    auto writer = MapWriter::open(path, {.buffer_bytes = 64});
    REQUIRE(writer);
    REQUIRE(writer->write(0x1000, 1, "one"));
    CHECK(read_file(path).empty());
    REQUIRE(writer->write(0x1000, 1, std::string(50, 'l')));
    CHECK(read_file(path) == "1000 1 one\n");
    REQUIRE(writer->flush());
    CHECK(lines_of(read_file(path)).size() == 2);
    REQUIRE(writer->write(0x1000, 1, "end"));
    CHECK(lines_of(read_file(path)).size() == 2);
  }
  CHECK(lines_of(read_file(path)).size() == 3);
}

TEST_CASE("the age of the oldest buffered entry decides when they are flushed", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "late.map";
  auto writer = MapWriter::open(path, {.buffer_bytes = 4096, .flush_after_ns = 40'000'000});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 1, "one"));
  CHECK(read_file(path).empty());
  for (int i = 0; i < 3; ++i) {
    ::usleep(20'000);
    REQUIRE(writer->write(0x1000, 1, "more"));
  }
  CHECK(read_file(path).starts_with("1000 1 one\n"));
}

TEST_CASE("buffered entries count towards the size limit", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "capped.map";
  auto writer = MapWriter::open(path, {.buffer_bytes = 4096, .max_bytes = 22});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 1, "one"));
  REQUIRE(writer->write(0x1000, 1, "two"));
  const Result<void> third = writer->write(0x1000, 1, "6th");
  CHECK((!third && third.error().sys_errno == EFBIG));
  REQUIRE(writer->flush());
  CHECK(read_file(path) == "1000 1 one\n1000 1 two\n");
}

TEST_CASE("an entry that would look like filler of a mapped writer is escaped", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "dots.map";
  auto writer = MapWriter::open(path);
  REQUIRE((writer && writer->write(0x1000, 0, ".Ltext") && writer->write(0x1000, 1, ".Ltext") &&
           writer->write(0x100000, 0, ".Ltext")));
  CHECK(read_file(path) == "1000 0 [.Ltext]\n1000 1 .Ltext\n100000 0 .Ltext\n");
}

TEST_CASE("a file does not grow beyond its size limit", "[writer]") {
  const Scratch scratch;
  auto writer = MapWriter::open(scratch / "capped.map", {.max_bytes = 24});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 1, "one"));
  REQUIRE(writer->write(0x1000, 1, "two"));
  const Result<void> third = writer->write(0x1000, 1, "three");
  REQUIRE(!third);
  CHECK(third.error().sys_errno == EFBIG);
  CHECK(read_file(scratch / "capped.map") == "1000 1 one\n1000 1 two\n");
}

}  // namespace perfmap
