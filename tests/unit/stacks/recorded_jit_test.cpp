// SPDX-License-Identifier: MIT
// Which files belong to a recorded process: while it runs, and after it has ended.

#include "support/recorded_world.hpp"

namespace perfmap::test::recorded_jit_test {
namespace {

namespace fs = std::filesystem;
using World = RecordedWorld;

}  // namespace

TEST_CASE("files that belong to the user of a running recorded process are used", "[owners]") {
  if (!may_give_away()) return;
  World world;
  const Recording recording = world.recording({});
  const std::string map = world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  World::give(map, kUser);
  DumpBytes dump;
  dump.header({.pid = 3}).load_of_size(5, 0x2000, 0x10, "loaded");
  World::give(world.planted.put("root/opt/jit-3.dump", dump.text()), kUser);
  const auto sources = world.find(recording, {"/opt/jit-3.dump"});
  CHECK(name_at(sources, 0x1000) == "own|");
  CHECK(name_at(sources, 0x2000) == "loaded|");
  CHECK(world.refused.foreign.empty());
  CHECK(world.refused.others.empty());
}

TEST_CASE("files of a third user are refused while the process runs", "[owners]") {
  if (!may_give_away()) return;
  World world;
  const Recording recording = world.recording({});
  world.put_map(1234);
  World::give(world.planted.put("root/opt/jit-3.dump", DumpBytes().header().text()), 1234);
  CHECK(world.find(recording, {"/opt/jit-3.dump"}) == nullptr);
  REQUIRE(world.refused.foreign.size() == 2);
  CHECK(to_string(world.refused.foreign[0]) ==
        "foreign-owner: " + world.tmp() +
            "/perf-42.map of process 42 (node) belongs to user 1234 and was not used: the process "
            "is alive and runs as user 7");
  CHECK(world.refused.foreign[1].owner == 1234);
}

TEST_CASE("a process that reused the pid is not the recorded one", "[owners]") {
  if (!may_give_away()) return;
  World world;
  const std::string map = world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  World::give(map, kUser);
  const Recording recording = world.recording({});
  CHECK(name_at(world.find(recording), 0x1000) == "own|");
  SECTION("it started later") { world.start(-10); }
  SECTION("it started before the recorded fork") { world.start(-50); }
  CHECK(world.find(recording) == nullptr);
}

TEST_CASE("a process whose second of start is known is the recorded one up to a second from it",
          "[owners]") {
  World world;
  world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  const int ahead_ms = GENERATE(-400, 0, 900, 1400);
  CHECK(name_at(world.find(world.recording({.ahead_ms = ahead_ms})), 0x1000) == "own|");
  const int too_far_ms = GENERATE(-600, 1600);
  CHECK(world.find(world.recording({.ahead_ms = too_far_ms})) == nullptr);
}

TEST_CASE("a recording from another machine matches no local process", "[owners]") {
  World world;
  world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  const Recording here = world.recording({});
  CHECK(name_at(world.find(here), 0x1000) == "own|");
  const Recording elsewhere = world.recording({.hostname = "no-machine-has-this-name"});
  CHECK(world.find(elsewhere) == nullptr);
}

TEST_CASE("without a comparable clock, the running process must have the recorded name",
          "[owners]") {
  World world;
  world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  const World::Shape shape{.has_clock = false};
  CHECK(name_at(world.find(world.recording(shape)), 0x1000) == "own|");
  SECTION("another name") {
    world.planted.start(1000, 'S', "java");
    CHECK(world.find(world.recording(shape)) == nullptr);
  }
  SECTION("it started after the recording was written") {
    static_cast<void>(world.recording(shape));
    world.set_time(world.planted.scratch() / "perf.data", -600);
    auto input = Input::open(world.planted.scratch() / "perf.data");
    REQUIRE(input);
    const auto old = Recording::open(*std::move(input));
    REQUIRE(old);
    CHECK(world.find(*old) == nullptr);
  }
}

TEST_CASE("files of another user may belong to a dead process, and are marked as guessed",
          "[owners]") {
  if (!may_give_away()) return;
  const bool has_clock = GENERATE(true, false);
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({.has_clock = has_clock});
  world.put_map(kUser);
  const std::string dump = world.put_dump(kUser);
  const auto sources = world.find(recording, {dump});
  CHECK(name_at(sources, 0x1000) == "from the map|guessed-owner");
  CHECK(name_at(sources, 0x2000) == "loaded|guessed-owner");
  CHECK(world.refused.foreign.empty());
}

TEST_CASE("our own files are used without a mark", "[owners]") {
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  world.planted.scratch().write("host/perf-42.map", "1000 10 from the map\n");
  CHECK(name_at(world.find(recording), 0x1000) == "from the map|");
}

TEST_CASE("a map that was written after the process had ended is marked", "[owners]") {
  World world;
  world.planted.vanish();
  const bool has_clock = GENERATE(true, false);
  const int written = GENERATE(-20, -8);  // seconds from now
  const Recording recording = world.recording({.exit = -10, .has_clock = has_clock});
  world.set_time(world.planted.scratch().write("host/perf-42.map", "1000 10 from the map\n"),
                 written);
  const bool is_doubtful = has_clock && written > -10;
  CHECK(name_at(world.find(recording), 0x1000) ==
        (is_doubtful ? "from the map|guessed-owner" : "from the map|"));
}

TEST_CASE("of the jitdumps that a recorded process had mapped, the first ones are opened",
          "[owners][hostile]") {
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kMaxProcessDumps; ++i) {
    paths.push_back(world.planted.scratch() / ("none/jit-" + std::to_string(i) + ".dump"));
  }
  CHECK(world.find(recording, paths) == nullptr);
  CHECK(world.refused.others.empty());
  const std::string last = world.planted.scratch().write("jit-42.dump", "not opened");
  paths.push_back(last);
  CHECK(world.find(recording, paths) == nullptr);
  REQUIRE(world.refused.others.size() == 1);
  CHECK(world.refused.others[0].message() ==
        "process 42 had mapped more than 64 jitdumps: only the first ones are read");
}

TEST_CASE("a guess requires each of its conditions", "[owners]") {
  if (!may_give_away()) return;
  World world;
  world.planted.vanish();
  Recording recording = world.recording({});
  const std::string map = world.put_map(kUser);
  std::string why;
  SECTION("one link") {
    fs::create_hard_link(map, map + ".other");
    why = "it has 2 names (hard links), and another user may have made one of them";
  }
  SECTION("written after the process started") {
    world.set_time(map, -40);
    why = "cannot use " + map + ": it is older than the process";
  }
  SECTION("not changed after the process ended") {
    recording = world.recording({.exit = -10});
    why = "it was changed after the process was last seen";
  }
  SECTION("not changed after the process ended, even with an earlier modification time") {
    recording = world.recording({.exit = -10});
    world.set_time(map, -20);
    why = "it was changed after the process was last seen";
  }
  CHECK(world.find(recording) == nullptr);
  REQUIRE(world.refused.foreign.size() + world.refused.others.size() == 1);
  CHECK((world.refused.foreign.empty() ? world.refused.others[0].message()
                                       : world.refused.foreign[0].why) == why);
}

TEST_CASE("a dump is guessed only if its header has the process's pid", "[owners]") {
  if (!may_give_away()) return;
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  const std::string dump = world.put_dump(kUser, 43);
  world.put_map(kUser);
  const auto sources = world.find(recording, {dump});
  CHECK(name_at(sources, 0x1000) == "from the map|guessed-owner");
  CHECK(name_at(sources, 0x2000) == "-");
  REQUIRE(world.refused.foreign.size() == 1);
  CHECK(world.refused.foreign[0].why == "its header names process 43");
}

TEST_CASE("files of several owners are not guessed, but files that fail do not count", "[owners]") {
  if (!may_give_away()) return;
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  const std::string dump = world.put_dump(kUser);
  const std::string map = world.put_map(1234);
  SECTION("both are possible") {
    CHECK(world.find(recording, {dump}) == nullptr);
    REQUIRE(world.refused.foreign.size() == 2);
    CHECK(world.refused.foreign[1].why == "other files of the process have another owner");
  }
  SECTION("one belongs to root") {
    World::give(map, 0);
    const auto sources = world.find(recording, {dump});
    CHECK(name_at(sources, 0x1000) == "from the map|");
    CHECK(name_at(sources, 0x2000) == "-");
  }
  SECTION("one was planted and has two links") {
    fs::create_hard_link(map, map + ".other");
    CHECK(name_at(world.find(recording, {dump}), 0x2000) == "loaded|guessed-owner");
  }
}

TEST_CASE("links and FIFOs in place of recorded files are refused", "[owners]") {
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  const std::string path = world.tmp() + "/perf-42.map";
  SECTION("a link") {
    fs::create_symlink(world.planted.scratch().write("elsewhere", "1000 10 own\n"), path);
  }
  SECTION("a FIFO") { REQUIRE(::mkfifo(path.c_str(), 0666) == 0); }
  CHECK(world.find(recording) == nullptr);
  REQUIRE(world.refused.others.size() == 1);
  CHECK(world.refused.others[0].code == Errc::refused);
}

TEST_CASE("with any_owner nothing is guessed or marked", "[owners]") {
  if (!may_give_away()) return;
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({.exit = -10});
  world.put_map(kUser);
  RecordedJitOptions options = world.options();
  options.any_owner = true;
  const auto find = find_recorded_jit(recording, std::move(options), world.refused);
  CHECK(name_at(find(world.process(), {}), 0x1000) == "from the map|");
}

TEST_CASE("open_recorded_dump() applies the same rules", "[owners]") {
  if (!may_give_away()) return;
  World world;
  world.planted.vanish();
  const Recording recording = world.recording({});
  const std::string path = world.put_dump(kUser);
  const auto open = open_recorded_dump(recording, world.options(), world.refused);
  const auto dump = open(kPid, at(-20), path);
  REQUIRE(dump);
  CHECK(dump->doubts.has(Doubt::guessed_owner));
  CHECK(open(kPid, at(-20), path + "x").error().code == Errc::not_found);
  fs::create_hard_link(path, path + ".other");
  const auto refused = open(kPid, at(-20), path);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::refused);
  CHECK(refused.error().message().ends_with(
      "and was not used: it has 2 names (hard links), and another user may have made one of them"));
  CHECK(world.refused.foreign.size() == 1);
}

TEST_CASE("a snapshot gives only the files of its own process", "[owners]") {
  World world;
  const Recording recording = world.recording({});
  world.planted.put("maps", "1000-9000 r-xp 00000000 00:00 0 \n");
  world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  const auto process = ProcSource::open(kPid, world.options().roots);
  REQUIRE(process);
  REQUIRE(*process);
  const std::string directory = world.planted.scratch() / "bundle";
  REQUIRE(take_snapshot(**process, world.options().roots, directory));
  auto snapshot = Snapshot::open(directory);
  REQUIRE(snapshot);
  world.planted.vanish();
  RecordedJitOptions options;
  options.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
  ProcessInfo recorded = world.process();
  const auto find = find_recorded_jit(recording, options, world.refused);
  CHECK(name_at(find(recorded, {}), 0x1000) == "own|");
  SECTION("nothing for another pid") { recorded.pid = 43; }
  SECTION("nothing for a later process with the same pid") {
    recorded.since = at(-10);
    CHECK(find(recorded, {}) == nullptr);
    REQUIRE(world.refused.others.size() == 1);
    CHECK(world.refused.others[0].message().ends_with("is another process with the same pid"));
  }
  CHECK(find(recorded, {}) == nullptr);
}

TEST_CASE("names from a snapshot taken with any_owner are marked", "[owners]") {
  if (!may_give_away()) return;
  World world;
  const Recording recording = world.recording({});
  world.planted.put("maps", "1000-9000 r-xp 00000000 00:00 0 \n");
  const std::string map = world.planted.put("root" + world.tmp() + "/perf-3.map", "1000 10 own\n");
  World::give(map, 1234);
  const auto process = ProcSource::open(kPid, world.options().roots);
  const std::string directory = world.planted.scratch() / "bundle";
  REQUIRE(take_snapshot(**process, world.options().roots, directory, {.any_owner = true}));
  RecordedJitOptions options;
  options.snapshot = std::make_shared<const Snapshot>(*Snapshot::open(directory));
  const auto find = find_recorded_jit(recording, options, world.refused);
  CHECK(name_at(find(world.process(), {}), 0x1000) == "own|guessed-owner");
}

}  // namespace perfmap::test::recorded_jit_test
