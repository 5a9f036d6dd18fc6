// SPDX-License-Identifier: MIT
// Recordings of one process with code from parents that were not recorded.

#include <filesystem>

#include "support/process_events.hpp"
#include "support/recorded_world.hpp"

namespace perfmap::test::unrecorded_parents_test {
namespace {

using Names = std::vector<std::string>;
using World = RecordedWorld;

constexpr AddressRange kCode{0x1000, 0x1000};

std::shared_ptr<JitSources> find_map(const ProcessInfo& process, const std::vector<std::string>&) {
  if (process.pid == 7) return map_sources("1000 10 parent\n1010 10 other\n");
  return process.pid == 8 ? map_sources("1010 10 own\n") : nullptr;
}

/// Process 7 runs the same program as the planted process, its child.
void plant_parent(const World& world, const std::string& auxv = "first program") {
  const Scratch& scratch = world.planted.scratch();
  const std::string us = std::to_string(PlantedProcess::uid());
  world.planted.put("status", "Name:\tnode\nTgid:\t42\nPPid:\t7\nUid:\t0\t" + us + "\t0\t0\n");
  scratch.write("proc/7/stat",
                "7 (boss) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 900 9 9 9\n");
  scratch.write("proc/7/status", "Name:\tboss\nTgid:\t7\nPPid:\t1\nUid:\t0\t" + us + "\t0\t0\n");
  scratch.write("proc/7/maps", "");
  scratch.write("proc/7/auxv", auxv);
}

}  // namespace

TEST_CASE("a process without a recorded fork gets the names of the parents that are found",
          "[stacks][fork]") {
  ProcessEvents events;
  events.map(8, kCode).sample(8, 0x1004).sample(8, 0x1014).end_of_round().sample(8, 0x1004);
  int asked = 0;
  const auto find_parents = [&](const ProcessInfo& process) {
    ++asked;
    CHECK(process.pid == 8);
    ProcessInfo parent;
    parent.pid = 7;
    return std::optional(std::vector{parent});
  };
  CHECK(events.names(find_map, find_parents) == Names{"parent?", "own", "parent?"});
  CHECK(asked == 1);
}

TEST_CASE("parents are searched only for JIT code of a process whose start is unknown",
          "[stacks][fork]") {
  ProcessEvents events;
  SECTION("its exec was recorded") { events.exec(8).map(8, kCode); }
  SECTION("its parent's exec and its fork were recorded") {
    events.exec(9).map(9, kCode).fork(8, 9);
  }
  SECTION("perf found it and all processes before it") { events.found(8, 0).map(8, kCode); }
  SECTION("it has no JIT code") { events.map(8, kCode, "/usr/bin/true"); }
  events.sample(8, 0x1004);
  bool was_asked = false;
  const auto find_parents = [&](const ProcessInfo&) -> std::optional<std::vector<ProcessInfo>> {
    was_asked = true;
    return std::nullopt;
  };
  CHECK(events.names(find_map, find_parents) == Names{"-"});
  CHECK(!was_asked);
}

TEST_CASE("the parents of a running process are those with the same program", "[owners]") {
  World world;
  const Recording recording = world.recording({});
  const auto parents = [&] {
    return find_recorded_parents(recording, world.options())(world.process());
  };
  SECTION("the parent runs the same program") {
    plant_parent(world);
    REQUIRE(parents());
    REQUIRE(parents()->size() == 1);
    CHECK(parents()->front().pid == 7);
    CHECK(parents()->front().comm == "boss");
  }
  SECTION("the parent runs another program") {
    plant_parent(world, "another program");
    REQUIRE(parents());
    CHECK(parents()->empty());
  }
  SECTION("the pid was reused by another process") {
    plant_parent(world);
    world.start(-10);
    CHECK(!parents());
  }
  SECTION("the process is gone") {
    world.planted.vanish();
    CHECK(!parents());
    RecordedJitOptions options = world.options();
    options.directory = world.tmp();
    REQUIRE(find_recorded_parents(recording, options)(world.process()));
  }
}

}  // namespace perfmap::test::unrecorded_parents_test
