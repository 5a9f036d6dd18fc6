// SPDX-License-Identifier: MIT
// Maps of processes that fork, and own maps that were replaced by links and other files.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <perfmap.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::read_file;
using test::Scratch;
using test::wait_for;

}  // namespace

TEST_CASE("a forked child does not write entries that its parent had buffered", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "buffered.map";
  auto writer = MapWriter::open(path, {.buffer_bytes = 4096});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 0x10, "the parent's"));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool good = writer->write(0x2000, 0x10, "the child's") && writer->close();
    ::_exit(good ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  REQUIRE(writer->close());
  CHECK(read_file(path) == "2000 10 the child's\n1000 10 the parent's\n");
}

namespace {

/// Runs `body` in a child and returns its exit status.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return WEXITSTATUS(wait_for(child));
}

std::string own_map(const Scratch& scratch, pid_t pid) {
  return scratch / ("perf-" + std::to_string(pid) + ".map");
}

/// The contents of both maps after the parent wrote one entry and forked, and the child wrote
/// another.
struct Maps {
  std::string parent;
  std::string child;
};
Maps fork_with(const Scratch& scratch, perfmap_fork_policy policy) {
  Maps maps;
  const pid_t parent = ::fork();
  if (parent == 0) {
    perfmap_state_options options{};
    options.struct_size = sizeof options;
    options.directory = scratch.path().c_str();
    options.fork = policy;
    if (perfmap_state_configure(&options) != 0) ::_exit(1);
    if (perfmap_state_write_entry(reinterpret_cast<void*>(0x1000), 16, "parent") != 0) ::_exit(2);
    const pid_t child = ::fork();
    if (child == 0) {
      const int written = perfmap_state_write_entry(reinterpret_cast<void*>(0x2000), 16, "child");
      ::_exit(written == 0 && perfmap_state_fini() == 0 ? 0 : 3);
    }
    if (wait_for(child) != 0) ::_exit(4);
    std::rename(own_map(scratch, child).c_str(), (scratch / "child").c_str());
    ::_exit(perfmap_state_fini() == 0 ? 0 : 5);
  }
  CHECK(wait_for(parent) == 0);
  maps.parent = read_file(own_map(scratch, parent));
  maps.child = read_file(scratch / "child");
  return maps;
}

}  // namespace

TEST_CASE("fresh: a child's map starts empty and the parent's does not change", "[writer]") {
  const Maps maps = fork_with(Scratch(), PERFMAP_FORK_FRESH);
  CHECK(maps.parent == "1000 10 parent\n");
  CHECK(maps.child == "2000 10 child\n");
}

TEST_CASE("inherit: a child's map starts as a copy of its parent's", "[writer]") {
  const Maps maps = fork_with(Scratch(), PERFMAP_FORK_INHERIT);
  CHECK(maps.parent == "1000 10 parent\n");
  CHECK(maps.child == "1000 10 parent\n2000 10 child\n");
}

TEST_CASE("off: a child writes nothing", "[writer]") {
  const Maps maps = fork_with(Scratch(), PERFMAP_FORK_OFF);
  CHECK(maps.parent == "1000 10 parent\n");
  CHECK(maps.child.empty());
}

TEST_CASE("a link, a FIFO or a directory at the path of the own map is refused", "[writer]") {
  const Scratch scratch;
  const auto refusal = [&](auto plant) {
    return in_child([&] {
      perfmap_state_options options{};
      options.struct_size = sizeof options;
      options.directory = scratch.path().c_str();
      perfmap_state_configure(&options);
      plant(own_map(scratch, ::getpid()));
      return perfmap_state_init() == -1 ? errno : 0;
    });
  };
  CHECK(refusal([](const std::string& path) {
          std::filesystem::create_symlink("/etc/passwd", path);
        }) == ELOOP);
  CHECK(refusal([](const std::string& path) { ::mkfifo(path.c_str(), 0600); }) != 0);
  CHECK(refusal([](const std::string& path) { ::mkdir(path.c_str(), 0700); }) == EISDIR);
}

}  // namespace perfmap
