// SPDX-License-Identifier: MIT
// The mapped writer with other writers, in forked processes, and out of room.

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <perfmap.h>
#include <set>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/mapped_maps.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap {

using namespace test;

TEST_CASE("a mapped writer refuses a file that another writer has open", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "m.map";
  {
    const auto plain = MapWriter::open(path);
    CHECK(MapWriter::open(path, kMapped).error().sys_errno == EBUSY);
  }
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  CHECK(MapWriter::open(path, kMapped).error().sys_errno == EBUSY);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  REQUIRE(writer->close());
  CHECK(MapWriter::open(path, kMapped));
}

TEST_CASE("of two mapped writers that open a file at once, at most one succeeds", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  for (int i = 0; i < 50; ++i) {
    const std::string path = scratch / ("m" + std::to_string(i) + ".map");
    std::array<std::optional<MapWriter>, 2> writers;
    std::atomic<int> ready{0};
    const auto open = [&](std::size_t mine) {
      ++ready;
      while (ready < 2) {
      }
      if (auto writer = MapWriter::open(path, kMapped)) writers[mine] = *std::move(writer);
    };
    std::thread other([&] { open(1); });
    open(0);
    other.join();
    // Each may see the other's descriptor in /proc, so both may fail.
    CHECK(!(writers[0] && writers[1]));
  }
}

TEST_CASE("an idle child does not prevent its parent from reopening its own map", "[writer]") {
  const Scratch scratch;
  const pid_t parent = ::fork();
  if (parent == 0) {
    int failed = ProcessMap::configure({.directory = scratch.path(), .writer = {.mapped = true}});
    failed |= ProcessMap::write(0x1000, 0x10, "before");
    const auto child =
        static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) ::pause();
    failed |= ProcessMap::fini() | ProcessMap::write(0x2000, 0x10, "after") | ProcessMap::fini();
    ::kill(child, SIGKILL);
    const std::string own = scratch / ("perf-" + std::to_string(::getpid()) + ".map");
    ::_exit(failed == 0 && read_file(own) == "1000 10 before\n2000 10 after\n" ? 0 : 1);
  }
  CHECK(wait_for(parent) == 0);
}

TEST_CASE("the next mapped writer removes filler of any length", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "long.map";
  const std::string line = "0 0 ." + std::string(9000, '.') + "\n";
  std::ofstream(path) << "1000 10 kept\n0 0 ....\n" << line << "0 0 .....\n" << line;
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE((writer && writer->write(0x2000, 0x10, "new") && writer->close()));
  CHECK(read_file(path) == "1000 10 kept\n2000 10 new\n");
}

TEST_CASE("a mapped writer continues with write(2) after another engine's lines", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "m.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  std::ofstream(path, std::ios::app) << "5000 10 another engine's\n";
  std::multiset<std::string> expected{"5000 10 another engine's", line_of(0, 0)};
  for (int i = 1; i < 5000; ++i) {
    REQUIRE(writer->write(start_of(i), 0x20, name_of(0, i)));
    expected.insert(line_of(0, i));
  }
  REQUIRE(writer->close());
  const std::vector<std::string> found = entries_in(read_file(path));
  CHECK(std::multiset<std::string>(found.begin(), found.end()) == expected);
}

TEST_CASE("a child never writes into its parent's mapped map", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "parent.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto written = writer->write(start_of(9), 0x20, name_of(9, 9));
    const bool refused = !written && written.error().sys_errno == EBADF;
    const bool closed = writer->close().has_value();
    ::_exit(refused && closed ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  CHECK(has_filler(path));  // the child did not truncate it
  REQUIRE(writer->write(start_of(1), 0x20, name_of(0, 1)));
  REQUIRE(writer->close());
  CHECK(read_file(path) == line_of(0, 0) + "\n" + line_of(0, 1) + "\n");
}

TEST_CASE("a living child does not prevent its parent from reopening the file", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "parent.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE((writer && writer->write(start_of(0), 0x20, name_of(0, 0))));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(writer->close());
  ::usleep(1000);
  bool opened = false;
  for (int tries = 0; tries < 30'000 && !opened; ++tries) {  // until the child has started to run
    opened = MapWriter::open(path, kMapped).has_value();
    if (!opened) ::usleep(2000);
  }
  CHECK(opened);
  ::kill(child, SIGKILL);
  wait_for(child);
}

TEST_CASE("a process's own map may be mapped, and a child gets its own", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const pid_t parent = ::fork();
  if (parent == 0) {
    perfmap_state_options options{};
    options.struct_size = sizeof options;
    options.directory = scratch.path().c_str();
    options.fork = PERFMAP_FORK_INHERIT;
    options.mapped = 1;
    int failed = perfmap_state_configure(&options);
    failed |= perfmap_state_write_entry(reinterpret_cast<void*>(0x1000), 16, "of the parent");
    const pid_t child = ::fork();
    if (child == 0) {
      failed |= perfmap_state_write_entry(reinterpret_cast<void*>(0x2000), 16, "of the child");
      failed |= perfmap_state_fini();
      const std::string own = scratch / ("perf-" + std::to_string(::getpid()) + ".map");
      const bool right = read_file(own) == "1000 10 of the parent\n2000 10 of the child\n";
      ::_exit(failed == 0 && right ? 0 : 1);
    }
    failed |= wait_for(child);
    failed |= perfmap_state_fini();
    const std::string own = scratch / ("perf-" + std::to_string(::getpid()) + ".map");
    ::_exit(failed == 0 && read_file(own) == "1000 10 of the parent\n" ? 0 : 1);
  }
  CHECK(wait_for(parent) == 0);
}

TEST_CASE("on a full disk a mapped write fails, and all earlier entries stay", "[writer]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    test::skip("no small tmpfs may be mounted here");
    return;
  }
  {
    auto writer = MapWriter::open(disk + "/full.map", kMapped);
    REQUIRE(writer);
    int written = 0;
    Result<void> result;
    while ((result = writer->write(start_of(written), 0x20, name_of(0, written)))) ++written;
    CHECK(result.error().sys_errno == ENOSPC);
    REQUIRE(writer->close());
    const std::vector<std::string> found = lines_of(read_file(disk + "/full.map"));
    REQUIRE(found.size() == static_cast<std::size_t>(written));
    CHECK(found.back() == line_of(0, written - 1));
    CHECK(read_file(disk + "/full.map").size() > 240u << 10);
  }
  ::umount(disk.c_str());
}

TEST_CASE("at the file size limit a mapped write fails, and all earlier entries stay", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "limited.map";
  const pid_t child = ::fork();
  if (child == 0) {
    // SIGXFSZ keeps its default action, so this fails if the writer tries to exceed the limit.
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = MapWriter::open(path, kMapped);
    int written = 0;
    Result<void> result;
    while (writer && (result = writer->write(start_of(written), 0x20, name_of(0, written)))) {
      ++written;
    }
    const bool right = writer && result.error().sys_errno == EFBIG && writer->close();
    ::_exit(right && static_cast<int>(lines_of(read_file(path)).size()) == written ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  const std::vector<std::string> found = lines_of(read_file(path));
  CHECK(found.size() > 500);
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i] == line_of(0, static_cast<int>(i)));
  }
}

TEST_CASE("a file that cannot be mapped is written with write(2)", "[writer]") {
  const Scratch scratch;
  const std::string path = scratch / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = read_file(path); });
  {
    auto writer = MapWriter::open(path, kMapped);
    REQUIRE(writer);
    CHECK(writer->write(0x1000, 0x10, "through a pipe"));
  }
  reader.join();
  CHECK(got == "1000 10 through a pipe\n");
}

}  // namespace perfmap
