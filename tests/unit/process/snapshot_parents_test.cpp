// SPDX-License-Identifier: MIT
// Snapshots of forked processes also contain what their parents wrote.

#include <filesystem>
#include <string>
#include <sys/stat.h>

#include "perfmap/profile/snapshot.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/planted_process.hpp"

namespace perfmap::snapshot_parents_test {
namespace {

namespace fs = std::filesystem;
using test::PlantedProcess;

constexpr const char* kMaps = "a000-b000 r-xp 00000000 00:01 9 /opt/jit-3.dump\n";

/// A planted process, and the directory for its snapshot.
struct World {
  World() { planted.put("maps", kMaps); }
  std::string directory() const { return planted.scratch() / "bundle"; }
  TakenSnapshot taken() const {
    const auto process = ProcSource::open(PlantedProcess::kPid, planted.roots());
    REQUIRE(process);
    REQUIRE(*process);
    auto snapshot = take_snapshot(**process, planted.roots(), directory());
    REQUIRE(snapshot);
    REQUIRE(*snapshot);
    return **std::move(snapshot);
  }

  PlantedProcess planted;
};

}  // namespace

TEST_CASE("a dump that is older than the child is taken from its parent", "[snapshot]") {
  World world;
  const test::Scratch& scratch = world.planted.scratch();
  scratch.write("proc/7/status", "Name:\tnode\nTgid:\t7\nUid:\t0\t7\t0\t0\nNStgid:\t7\t2\n");
  scratch.write("proc/7/stat", "7 (node) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 900 9 9 9\n");
  scratch.write("proc/7/maps", kMaps);
  scratch.write("proc/7/auxv", "first program");
  const std::string dump =
      scratch.write("proc/7/root/opt/jit-3.dump",
                    test::DumpBytes().header().load_of_size(5, 0x1000, 0x10, "loaded").text());
  fs::create_directories(world.planted.path("root/opt"));
  fs::create_hard_link(dump, world.planted.path("root/opt/jit-3.dump"));
  world.planted.start(400'000'000'000);  // the child starts in 2096
  const TakenSnapshot taken = world.taken();
  CHECK(taken.manifest.parents == std::vector<pid_t>{7});
  CHECK(taken.manifest.left_out.empty());
  REQUIRE(taken.manifest.files.size() == 1);
  CHECK(taken.manifest.files[0].path == "proc/7/root/opt/jit-3.dump");
  const auto snapshot = Snapshot::open(world.directory());
  REQUIRE(snapshot);
  CHECK(snapshot->manifest() == taken.manifest);
  // Its own file, if it was written after the fork, is taken once.
  fs::remove_all(world.directory());
  world.planted.start(1000);
  const TakenSnapshot own = world.taken();
  REQUIRE(own.manifest.files.size() == 1);
  CHECK(own.manifest.files[0].path == "proc/42/root/opt/jit-3.dump");
  // A child that runs another program inherits nothing.
  fs::remove_all(world.directory());
  scratch.write("proc/7/auxv", "another program");
  CHECK(world.taken().manifest.parents.empty());
  CHECK_FALSE(fs::exists(world.directory() + "/proc/7"));
}

TEST_CASE("a bundle with links or FIFOs in place of a parent's files is refused",
          "[snapshot][hostile]") {
  World world;
  world.taken();
  const std::string parent = world.directory() + "/proc/43";
  SECTION("the directory") { fs::create_directory_symlink("42", parent); }
  SECTION("a FIFO") {
    fs::copy(world.directory() + "/proc/42", parent, fs::copy_options::recursive);
    fs::remove(parent + "/status");
    REQUIRE(::mkfifo((parent + "/status").c_str(), 0666) == 0);
  }
  const auto snapshot = Snapshot::open(world.directory());
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == Errc::refused);
}

TEST_CASE("a bundle with too many processes is refused", "[snapshot][hostile]") {
  World world;
  world.taken();
  for (int pid = 100; pid < 170; ++pid) {
    fs::copy(world.directory() + "/proc/42", world.directory() + "/proc/" + std::to_string(pid));
  }
  const auto snapshot = Snapshot::open(world.directory());
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == Errc::too_large);
}

}  // namespace perfmap::snapshot_parents_test
