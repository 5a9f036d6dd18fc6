// SPDX-License-Identifier: MIT
// The process's own map: concurrent use by threads, exit, and children.

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <perfmap.h>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::lines_of;
using test::read_file;
using test::Scratch;
using test::wait_for;

std::string own_map(const Scratch& scratch, pid_t pid) {
  return scratch / ("perf-" + std::to_string(pid) + ".map");
}

/// Runs `body` in a child process, which ends with exit(3), and returns its pid.
template <class Body>
pid_t run(Body body) {
  const pid_t child = ::fork();
  if (child == 0) std::exit(body() ? 0 : 1);
  CHECK(wait_for(child) == 0);
  return child;
}

}  // namespace

TEST_CASE("several threads may write, flush, close and configure the own map at once",
          "[writer][tsan]") {
  const Scratch scratch;
  constexpr int kEach = 300;
  REQUIRE(ProcessMap::configure({.directory = scratch.path()}) == 0);
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "thread " + std::to_string(t) + " " + std::to_string(i);
        if (ProcessMap::write(0x1000, 0x10, name) != 0) ++failed;
      }
    });
  }
  std::thread other([&] {
    while (!done) {
      ProcessMap::fini();
      ProcessMap::configure({.directory = scratch.path(), .writer = {.buffer_bytes = 500}});
      ProcessMap::init();
      ProcessMap::flush();
    }
  });
  for (std::thread& writer : writers) writer.join();
  done = true;
  other.join();
  CHECK(ProcessMap::fini() == 0);
  CHECK(failed == 0);
  const std::vector<std::string> found = lines_of(read_file(own_map(scratch, ::getpid())));
  CHECK(found.size() == 4 * kEach);
  CHECK(std::set<std::string>(found.begin(), found.end()).size() == 4 * kEach);
}

TEST_CASE("buffered entries are written at exit", "[writer]") {
  const Scratch scratch;
  const pid_t child = run([&] {
    return ProcessMap::configure({.directory = scratch.path(), .writer = {.buffer_bytes = 4096}}) ==
               0 &&
           ProcessMap::write(0x1000, 0x10, "last words") == 0;
  });
  CHECK(read_file(own_map(scratch, child)) == "1000 10 last words\n");
}

TEST_CASE("threads may still write while the process exits", "[writer]") {
  const Scratch scratch;
  for (int round = 0; round < 10; ++round) {
    const pid_t child = run([&] {
      ::alarm(60);
      if (::chdir(scratch.path().c_str()) != 0) return false;
      ProcessMap::configure({.directory = scratch.path(), .writer = {.buffer_bytes = 4096}});
      static std::atomic<int> written{0};
      for (int t = 0; t < 4; ++t) {
        std::thread([] {
          while (ProcessMap::write(0x1000, 0x10, "background compiler") == 0) ++written;
        }).detach();
      }
      while (written < 200) std::this_thread::yield();
      return true;
    });
    // The process may end during the last write, which then stops at the end of a page.
    std::string text = read_file(own_map(scratch, child));
    text.resize(text.rfind('\n') + 1);
    const std::vector<std::string> found = lines_of(text);
    CHECK(std::set<std::string>(found.begin(), found.end()) ==
          std::set<std::string>{"1000 10 background compiler"});
  }
  // Each process wrote only to its own map.
  const auto first = std::filesystem::directory_iterator(scratch.path());
  CHECK(std::distance(first, std::filesystem::directory_iterator()) == 10);
}

TEST_CASE("a child's copy includes entries that its parent had buffered", "[writer]") {
  const Scratch scratch;
  pid_t grandchild = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ProcessMap::configure({.directory = scratch.path(),
                           .fork = ForkPolicy::inherit,
                           .writer = {.buffer_bytes = 4096}});
    ProcessMap::write(0x1000, 0x10, "before the fork");
    grandchild = run([] { return ProcessMap::write(0x2000, 0x10, "the child's") == 0; });
    ::rename(own_map(scratch, grandchild).c_str(), (scratch / "child").c_str());
    std::exit(0);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_file(own_map(scratch, child)) == "1000 10 before the fork\n");
  CHECK(read_file(scratch / "child") == "1000 10 before the fork\n2000 10 the child's\n");
}

TEST_CASE("off: a child does not write after fini() either", "[writer]") {
  const Scratch scratch;
  run([&] {
    ProcessMap::configure({.directory = scratch.path(), .fork = ForkPolicy::off});
    const pid_t child = run([] {
      return ProcessMap::fini() == 0 && ProcessMap::write(0x2000, 0x10, "the child's") == 0;
    });
    return ::access(own_map(scratch, child).c_str(), F_OK) != 0;
  });
}

TEST_CASE("a child may configure its own map before it uses the map", "[writer]") {
  const Scratch scratch;
  run([&] {
    ProcessMap::configure({.directory = scratch.path()});
    ProcessMap::init();
    const pid_t child = run([&] {
      return ProcessMap::configure({.directory = scratch.path()}) == 0 &&
             ProcessMap::write(0x2000, 0x10, "the child's") == 0;
    });
    return read_file(own_map(scratch, child)) == "2000 10 the child's\n" &&
           read_file(own_map(scratch, ::getpid())).empty();
  });
}

TEST_CASE("an invalid fork policy is refused", "[writer]") {
  CHECK(perfmap_state_set_fork(99) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("copying from a null path is refused", "[writer]") {
  run([] { return ProcessMap::copy(nullptr) == -1 && errno == EINVAL; });
}

TEST_CASE("buffer_bytes is a limit and is not allocated in advance", "[writer]") {
  const Scratch scratch;
  auto writer = MapWriter::open(scratch / "big.map", {.buffer_bytes = SIZE_MAX});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 0x10, "one"));
  REQUIRE(writer->close());
  CHECK(read_file(scratch / "big.map") == "1000 10 one\n");
}

}  // namespace perfmap
