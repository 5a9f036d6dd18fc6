// SPDX-License-Identifier: MIT
// Files that dead processes left: which may be removed, which stay, and what attackers put in the
// way.

#include "perfmap/profile/garbage.hpp"

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/planted_process.hpp"

namespace perfmap::garbage_test {
namespace {

namespace fs = std::filesystem;
using test::PlantedProcess;

/// A separate /tmp, and a planted process 42 that sees itself as 3.
struct World {
  World() { fs::create_directory(tmp()); }
  std::string tmp() const { return planted.scratch() / "tmp"; }
  std::string put(const std::string& name, std::string_view text = "1000 10 name\n") const {
    return planted.scratch().write("tmp/" + name, text);
  }
  Garbage find(GarbageOptions options = {}) const {
    options.roots = {.proc = planted.scratch() / "proc", .tmp = tmp()};
    auto garbage = Garbage::find(options);
    REQUIRE(garbage);
    return *std::move(garbage);
  }
  bool has(const std::string& name) const {
    return fs::exists(fs::symlink_status(tmp() + "/" + name));
  }

  PlantedProcess planted;
};

GarbageFile only(const Garbage& garbage) {
  REQUIRE(garbage.files().size() == 1);
  return garbage.files()[0];
}

void set_time(const std::string& path, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

}  // namespace

TEST_CASE("files of pids without a process can be removed, others stay", "[gc]") {
  const World world;
  for (const char* name : {"perf-7.map", "jit-7.dump", "jitted-7-0.so", "perfinfo-7.map",
                           "perf-42.map", "perfinfo-42.map"}) {
    world.put(name);
  }
  Garbage garbage = world.find();
  REQUIRE(garbage.files().size() == 6);
  for (const GarbageFile& file : garbage.files()) {
    CHECK(file.may_go() == (file.pid == 7));
    CHECK(garbage.remove(file).has_value() == (file.pid == 7));
  }
  CHECK(world.has("perf-42.map"));
  CHECK_FALSE(world.has("perf-7.map"));
  CHECK_FALSE(world.has("jit-7.dump"));
  CHECK_FALSE(world.has("jitted-7-0.so"));
  CHECK_FALSE(world.has("perfinfo-7.map"));
  CHECK(world.has("perfinfo-42.map"));
}

TEST_CASE("in JavaScriptCore's names of dumps, the pid follows a thread", "[gc]") {
  const World world;
  for (const char* name : {"jit-42-7.dump", "jit-42-7-Ab3xYz", "jit-7-42.dump"}) world.put(name);
  Garbage garbage = world.find();
  REQUIRE(garbage.files().size() == 3);
  for (const GarbageFile& file : garbage.files()) {
    CAPTURE(file.name);
    CHECK(file.kind == GarbageKind::dump);
    CHECK(file.may_go() == (file.pid == 7));
  }
}

TEST_CASE("files whose names only resemble those of maps and dumps are not garbage", "[gc]") {
  const World world;
  for (const char* name : {"perf-7.map~",       "perf-07.map",
                           "perf-0.map",        "perf--7.map",
                           "perf-.map",         "perf-7.MAP",
                           "xperf-7.map",       "perf-7.map.gz",
                           "perf-99999999.map", "perf-99999999999999999999.map",
                           "jitted-7.so",       "jitted-7-.so",
                           "jitted-7-x.so",     "jitted-7-01.so",
                           "perf-7 .map",       "jit-7.map",
                           "perf-7.dump",       "perf-+7.map",
                           "jit-7-8",           "jit-7-8-abc",
                           "jit-7-8-abcdefg",   "jit-7-08.dump",
                           "jit-07-8.dump",     "jit-7-8-9.dump",
                           "jit--8.dump",       "jit-7-.dump",
                           "perf-7-8.map",      "perfinfo-07.map",
                           "perfinfo-.map",     "perfinfo7.map"}) {
    world.put(name);
  }
  CHECK(world.find().files().empty());
}

TEST_CASE("only regular files count, and links are not followed", "[gc][hostile]") {
  const World world;
  const std::string secret = world.planted.scratch().write("secret", "mine");
  fs::create_symlink(secret, world.tmp() + "/perf-7.map");
  fs::create_symlink("nowhere", world.tmp() + "/perf-8.map");
  fs::create_directory(world.tmp() + "/perf-9.map");
  REQUIRE(::mkfifo((world.tmp() + "/jit-7.dump").c_str(), 0666) == 0);
  CHECK(world.find().files().empty());
}

TEST_CASE("a file that was replaced or changed since the search is not removed", "[gc][hostile]") {
  const World world;
  const std::string path = world.put("perf-7.map");
  Garbage garbage = world.find();
  SECTION("replaced by a link") {
    fs::remove(path);
    fs::create_symlink(world.planted.scratch().write("secret", "mine"), path);
  }
  SECTION("replaced by a FIFO") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
  }
  SECTION("replaced by another file") { fs::rename(world.put("other", "1000 10 other\n"), path); }
  SECTION("the same file, with a line appended") {
    world.put("perf-7.map", "1000 10 name\n2000 10 b\n");
  }
  const auto removed = garbage.remove(garbage.files()[0]);
  REQUIRE_FALSE(removed);
  CHECK(removed.error().code == Errc::refused);
  CHECK(removed.error().message().ends_with("it has changed"));
  CHECK(world.has("perf-7.map"));
}

TEST_CASE("a process that starts between search and removal keeps its file", "[gc]") {
  const World world;
  world.put("perf-43.map");
  Garbage garbage = world.find();
  fs::copy(world.planted.path(""), world.planted.scratch() / "proc/43");
  world.planted.scratch().write("proc/43/status", "Name:\tnode\nTgid:\t43\n");
  const auto removed = garbage.remove(only(garbage));
  REQUIRE_FALSE(removed);
  CHECK(world.has("perf-43.map"));
}

TEST_CASE("a file that is older than the process with its pid can be removed", "[gc]") {
  const World world;
  const std::string path = world.put("perf-42.map");
  world.planted.scratch().write("proc/stat", "btime 1000000\n");
  world.planted.start(100'000);  // 1000 s later
  struct Case {
    time_t time;
    bool may_go;
  };
  const auto c = GENERATE(values<Case>({{1'000'000, true},
                                        {1'000'930, true},
                                        {1'000'970, false},  // tolerance, because clocks are
                                                             // adjusted
                                        {1'001'001, false}}));
  CAPTURE(c.time);
  set_time(path, c.time);
  Garbage garbage = world.find();
  const GarbageFile file = only(garbage);
  CHECK(file.may_go() == c.may_go);
  CHECK(file.why == (c.may_go ? GarbageWhy::older : GarbageWhy::alive));
  CHECK(garbage.remove(file).has_value() == c.may_go);
}

TEST_CASE("a file stays if a process in another namespace has its pid and perhaps our /tmp",
          "[gc]") {
  const World world;
  world.put("perf-3.map");
  SECTION("it has its own /tmp") {
    fs::create_directories(world.planted.path("root" + world.tmp()));
    CHECK(only(world.find()).why == GarbageWhy::dead);
  }
  SECTION("it has no such directory") { CHECK(only(world.find()).why == GarbageWhy::dead); }
  SECTION("its root cannot be examined") {
    fs::remove_all(world.planted.path("root"));
    const GarbageFile file = only(world.find());
    CHECK(file.why == GarbageWhy::other_namespace);
    CHECK(file.user == 42);
  }
  SECTION("a link in its root may lead to our /tmp") {
    const std::string path = world.planted.path("root" + world.tmp());
    fs::create_directories(fs::path(path).parent_path());
    fs::create_symlink("elsewhere", path);
    CHECK(only(world.find()).why == GarbageWhy::other_namespace);
  }
}

TEST_CASE("a file that a process has mapped or open stays, even if its pid is dead", "[gc]") {
  const World world;
  const std::string path = world.put("jit-7.dump");
  SECTION("mapped") {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    world.planted.put("maps", "1000-2000 r-xp 00000000 00:99 " + std::to_string(status.st_ino) +
                                  " /other/name\n");
  }
  SECTION("open") {
    fs::create_directory(world.planted.path("fd"));
    fs::create_symlink(path, world.planted.path("fd/5"));
  }
  const GarbageFile file = only(world.find());
  CHECK(file.why == GarbageWhy::in_use);
  CHECK(file.user == 42);
}

TEST_CASE("files of other users stay unless any_owner is set", "[gc]") {
  const World world;
  const std::string path = world.put("perf-7.map");
  if (::geteuid() != 0) {
    SUCCEED("only root can make a file of somebody else");
    return;
  }
  REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  CHECK(only(world.find()).why == GarbageWhy::foreign);
  CHECK(only(world.find({.any_owner = true})).why == GarbageWhy::dead);
}

TEST_CASE("a huge sparse file is found and removed like a small one", "[gc][hostile]") {
  const World world;
  const std::string path = world.put("perf-7.map");
  REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0);
  Garbage garbage = world.find();
  CHECK(only(garbage).size == std::uint64_t{1} << 40);
  CHECK(garbage.remove(only(garbage)));
  CHECK_FALSE(world.has("perf-7.map"));
}

TEST_CASE("removing a file that is already gone succeeds", "[gc]") {
  const World world;
  fs::remove(world.put("perf-7.map"));
  const std::string path = world.put("perf-7.map");
  Garbage garbage = world.find();
  fs::remove(path);
  CHECK(garbage.remove(only(garbage)));
}

TEST_CASE("the file of a zombie can be removed", "[gc]") {
  const World world;
  world.put("perf-42.map");
  world.planted.start(1000, 'Z');
  Garbage garbage = world.find();
  CHECK(only(garbage).why == GarbageWhy::dead);
  CHECK(garbage.remove(only(garbage)));
}

}  // namespace perfmap::garbage_test
