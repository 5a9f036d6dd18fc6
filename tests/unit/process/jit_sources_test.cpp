// SPDX-License-Identifier: MIT
// The perf map and the jitdumps of a process: while they grow, and across exec and reuse of pids.

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/planted_process.hpp"

namespace perfmap::jit_sources_test {
namespace {

using test::PlantedProcess;

constexpr const char* kMap = "root/tmp/perf-3.map";

/// A tracker of a planted process with anonymous code at 0x1000-0x9000.
struct Tracked {
  Tracked() : tracker({.roots = planted.roots(), .any_owner = false, .open_module = {}}) {
    planted.put("maps",
                "1000-9000 r-xp 00000000 00:00 0 \n"
                "a000-b000 rw-p 00000000 00:00 0 \n"
                "c000-d000 r-xp 00000000 00:01 9 /memfd:doublemapper (deleted)\n");
    REQUIRE(tracker.import(42, 10));
  }
  std::string name_at(Address address, std::uint64_t time = ProcessTracker::kNow) {
    const auto code = tracker.find_jit_code(42, address, time);
    return code ? std::string(code->name) : "-";
  }
  void refresh() { REQUIRE(tracker.refresh_jit(42)); }
  Imported import(std::uint64_t time) {
    const auto done = tracker.import(42, time);
    REQUIRE(done);
    return *done;
  }

  PlantedProcess planted;
  ProcessTracker tracker;
};

}  // namespace

TEST_CASE("a process's map names code in executable memory, and its new lines are read", "[jit]") {
  Tracked world;
  world.refresh();
  CHECK(world.tracker.jit(42) == nullptr);
  world.planted.put(kMap, "1000 10 one\na000 10 data\nc000 10 dotnet\ne000 10 unmapped\n20");
  world.refresh();
  REQUIRE(world.tracker.jit(42) != nullptr);
  CHECK(world.name_at(0x1004) == "one");
  CHECK(world.name_at(0x1010) == "-");
  CHECK(world.name_at(0xa000) == "-");
  CHECK(world.name_at(0xc000) == "dotnet");
  CHECK(world.name_at(0xe000) == "-");
  world.planted.append(kMap, "00 10 two\n1000 8 newer\n");
  CHECK(world.name_at(0x2000) == "-");
  world.refresh();
  CHECK(world.name_at(0x2000) == "two");
  CHECK(world.name_at(0x1000) == "newer");
  CHECK(world.name_at(0x1008) == "one");
}

TEST_CASE("a jitdump that appears later is read, and its names win over the map's", "[jit]") {
  Tracked world;
  world.planted.put(kMap, "1000 10 from the map\n3000 10 map only\n");
  world.refresh();
  CHECK(world.name_at(0x1000) == "from the map");
  const std::string dump =
      test::DumpBytes().header().load_of_size(5, 0x1000, 0x10, "loaded").text();
  world.planted.put("root/tmp/jit-3.dump", dump);
  world.refresh();
  CHECK(world.name_at(0x1000) == "loaded");
  CHECK(world.name_at(0x3000) == "map only");
  // A removed file keeps its entries, and the other sources still grow.
  std::filesystem::remove(world.planted.path(kMap));
  world.planted.append("root/tmp/jit-3.dump",
                       test::DumpBytes().load_of_size(6, 0x4000, 0x10, "later").text());
  world.refresh();
  CHECK(world.name_at(0x3000) == "map only");
  CHECK(world.name_at(0x4000) == "later");
  REQUIRE(world.tracker.jit(42)->resolver().timelines().size() == 1);
}

TEST_CASE("a map that is older than its process is refused", "[jit][hostile]") {
  Tracked world;
  const std::string path = world.planted.put(kMap, "1000 10 old\n");
  timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
  world.refresh();
  CHECK(world.name_at(0x1000) == "-");
  const auto process = ProcSource::open(42, world.planted.roots());
  const auto sources = JitSources::find(**process, {world.planted.roots()});
  REQUIRE((*sources)->refused().size() == 1);
  CHECK((*sources)->refused()[0].message().ends_with("it is older than the process"));
  world.planted.append(kMap, "2000 10 new\n");
  world.refresh();
  CHECK(world.name_at(0x2000) == "new");
}

TEST_CASE("after an exec the names of the former program are gone", "[jit]") {
  Tracked world;
  world.planted.put(kMap, "1000 10 old\n");
  world.refresh();
  CHECK(world.name_at(0x1000) == "old");
  world.planted.put("auxv", "second program");
  world.planted.append(kMap, "2000 10 the second's\n");
  world.refresh();  // before the exec was noticed
  CHECK(world.name_at(0x2000) == "-");
  CHECK(world.import(20) == Imported::began);
  CHECK(world.tracker.find(42)->began == ProcessBegin::executed);
  CHECK(world.tracker.find(42)->generation == 2);
  CHECK(world.name_at(0x1000) == "-");
  world.refresh();
  CHECK(world.name_at(0x1000) == "-");
  CHECK(world.name_at(0x2000) == "-");  // it may belong to either program
  CHECK(world.name_at(0x1000, 15) == "old");
  SECTION("appended lines count") {
    world.planted.append(kMap, "1008 10 new\n");
    world.refresh();
    CHECK(world.name_at(0x1000) == "-");
    CHECK(world.name_at(0x1008) == "new");
  }
  SECTION("a rewritten map counts") {
    world.planted.put(kMap, "1000 10 new and longer than the old one\n");
    world.refresh();
    CHECK(world.name_at(0x1000) == "new and longer than the old one");
  }
  SECTION("a new file counts") {
    std::filesystem::remove(world.planted.path(kMap));
    world.planted.put("root/tmp/x", "");  // so that the inode differs
    world.planted.put(kMap, "1000 10 new\n");
    world.refresh();
    CHECK(world.name_at(0x1000) == "new");
  }
}

TEST_CASE("a process that reuses a pid does not get the names of the former one", "[jit]") {
  Tracked world;
  world.planted.put(kMap, "1000 10 old\n");
  world.refresh();
  world.planted.start(2000);
  // Until the change is noticed, the sources still belong to the old process and read nothing new.
  world.planted.append(kMap, "2000 10 new\n");
  world.refresh();
  CHECK(world.name_at(0x2000) == "-");
  CHECK(world.import(20) == Imported::began);
  CHECK(world.tracker.find(42)->began == ProcessBegin::imported);
  world.refresh();
  CHECK(world.name_at(0x1000) == "-");
  world.planted.vanish();
  CHECK(world.import(30) == Imported::vanished);
  CHECK(world.name_at(0x1000) == "-");
  CHECK(world.name_at(0x1000, 15) == "old");
  CHECK(*world.tracker.refresh_jit(42) == nullptr);
}

TEST_CASE("a forked child uses its parent's names for the memory that it inherited", "[jit]") {
  ProcessTracker tracker;
  MmapEvent event;
  event.pid = 7;
  event.time = 1;
  event.range = {0x1000, 0x1000};
  event.access = {true, false, true, false};
  tracker.on_mmap(event);
  const auto sources = [](const std::string& text) {
    std::vector<Map> maps;
    maps.emplace_back(Input::from_text(text, "map"));
    return std::make_shared<JitSources>(std::move(maps), std::vector<Jitdump>());
  };
  tracker.attach_jit(7, sources("1000 10 parent\n1800 10 parent too\n"));
  tracker.on_fork({8, 8, 7, 5});
  const auto name_at = [&](Address address) {
    const auto code = tracker.find_jit_code(8, address);
    return code ? std::string(code->name) : "-";
  };
  CHECK(name_at(0x1000) == "parent");
  tracker.attach_jit(8, sources("1800 8 child\n"));
  CHECK(name_at(0x1000) == "parent");
  CHECK(name_at(0x1800) == "child");
  event.pid = 8;
  event.time = 6;
  event.name = "/memfd:jit (deleted)";
  tracker.on_mmap(event);
  CHECK(name_at(0x1000) == "-");
  CHECK(name_at(0x1800) == "child");
}

TEST_CASE("the sources of living processes hold no descriptors", "[jit]") {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  Tracked world;
  world.planted.put(kMap, "1000 10 one\n");
  for (int i = 0; i < 10; ++i) {
    world.refresh();
    world.import(20);
    world.planted.append(kMap, "2000 10 two\n");
  }
  CHECK(descriptors() == before);
}

}  // namespace perfmap::jit_sources_test
