// SPDX-License-Identifier: MIT
// Snapshots of processes: taken, moved, opened again; and bundles made by attackers.

#include "perfmap/profile/snapshot.hpp"

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/planted_process.hpp"

namespace perfmap::snapshot_test {
namespace {

namespace fs = std::filesystem;
using test::PlantedProcess;

constexpr const char* kMaps =
    "1000-9000 r-xp 00000000 00:00 0 \n"
    "a000-b000 r-xp 00000000 00:01 9 /opt/jit-3.dump\n";

/// A planted process, and the directory for its snapshot.
struct World {
  World() { planted.put("maps", kMaps); }
  std::string directory() const { return planted.scratch() / "bundle"; }
  Result<std::optional<TakenSnapshot>> take(const SnapshotOptions& options = {}) const {
    const auto process = ProcSource::open(PlantedProcess::kPid, planted.roots());
    REQUIRE(process);
    REQUIRE(*process);
    return take_snapshot(**process, planted.roots(), directory(), options);
  }
  TakenSnapshot taken(const SnapshotOptions& options = {}) const {
    auto result = take(options);
    REQUIRE(result);
    REQUIRE(*result);
    return **std::move(result);
  }

  PlantedProcess planted;
};

std::string name_at(const Snapshot& snapshot, Address address) {
  ProcessTracker tracker({.roots = snapshot.roots(), .any_owner = true, .open_module = {}});
  REQUIRE(tracker.import(snapshot.pid(), 1));
  REQUIRE(tracker.refresh_jit(snapshot.pid()));
  const auto code = tracker.find_jit_code(snapshot.pid(), address);
  return code ? std::string(code->name) : "-";
}

std::size_t count_of(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a moved snapshot gives the same names after its process has ended", "[snapshot]") {
  World world;
  world.planted.put("root/tmp/perf-3.map", "1000 10 from the map\n2000 10 map only\n3000 1");
  world.planted.put("root/opt/jit-3.dump",
                    test::DumpBytes().header().load_of_size(5, 0x1000, 0x10, "loaded").text());
  const TakenSnapshot taken = world.taken();
  CHECK(taken.end == SnapshotEnd::lives);
  CHECK(taken.regions == 2);
  REQUIRE(taken.manifest.files.size() == 2);
  CHECK(taken.manifest.files[0].path == "tmp/perf-42.map");
  CHECK(taken.manifest.files[0].cut == 6);
  CHECK(taken.manifest.files[1].path == "proc/42/root/opt/jit-3.dump");
  CHECK(taken.manifest.namespace_pids == std::vector<pid_t>{42, 3});

  world.planted.vanish();
  const std::string moved = world.planted.scratch() / "elsewhere";
  fs::rename(world.directory(), moved);
  const auto snapshot = Snapshot::open(moved);
  REQUIRE(snapshot);
  CHECK(snapshot->pid() == 42);
  CHECK(snapshot->manifest() == taken.manifest);
  CHECK(name_at(*snapshot, 0x1000) == "loaded");
  CHECK(name_at(*snapshot, 0x2000) == "map only");
  CHECK(name_at(*snapshot, 0x3000) == "-");
  CHECK(name_at(*snapshot, 0xc000) == "-");
}

TEST_CASE("a snapshot from a machine with another boot time can be opened", "[snapshot]") {
  World world;
  world.planted.put("root/tmp/perf-3.map", "1000 10 name\n");
  world.taken();
  const std::string boot = world.directory() + "/proc/stat";
  for (const char* text :
       {"btime 4000000000\n", "btime 1\n", "btime\n", "", "btime 99999999999999999999\n"}) {
    CAPTURE(text);
    std::ofstream(boot) << text;
    // The map keeps its time, so it is older than a process on a machine that booted in 2096.
    const auto snapshot = Snapshot::open(world.directory());
    REQUIRE(snapshot);
    CHECK(name_at(*snapshot, 0x1000) ==
          (std::string_view(text) == "btime 4000000000\n" ? "-" : "name"));
  }
}

TEST_CASE("a bundle is private, has no environment, and the command line only on request",
          "[snapshot]") {
  World world;
  world.planted.put("environ", std::string_view("PASSWORD=x\0", 11));
  world.planted.put("cmdline", std::string_view("run\0--password=x\0", 17));
  const bool wanted = GENERATE(false, true);
  world.taken({.with_command_line = wanted});
  const std::string process = world.directory() + "/proc/42/";
  CHECK_FALSE(fs::exists(process + "environ"));
  CHECK(fs::exists(process + "cmdline") == wanted);
  CHECK(fs::status(world.directory()).permissions() == fs::perms::owner_all);
  CHECK(fs::status(process).permissions() == fs::perms::owner_all);
  CHECK(fs::status(process + "maps").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a snapshot replaces no existing file, and leaves nothing if it fails", "[snapshot]") {
  World world;
  const std::size_t before = count_of(world.planted.scratch().path());
  SECTION("a directory that is not empty") { world.planted.scratch().write("bundle/x", ""); }
  SECTION("a file") { world.planted.scratch().write("bundle", ""); }
  SECTION("a link") { fs::create_directory_symlink("/tmp", world.directory()); }
  const auto taken = world.take();
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == Errc::refused);
  CHECK(count_of(world.planted.scratch().path()) == before + 1);
}

TEST_CASE("an empty directory becomes the snapshot", "[snapshot]") {
  World world;
  fs::create_directory(world.directory());
  world.taken();
  CHECK(Snapshot::is_at(world.directory()));
}

TEST_CASE("a process that is gone leaves no snapshot", "[snapshot]") {
  World world;
  const auto process = ProcSource::open(PlantedProcess::kPid, world.planted.roots());
  REQUIRE(process);
  world.planted.vanish();
  const auto taken = take_snapshot(**process, world.planted.roots(), world.directory());
  REQUIRE(taken);
  CHECK_FALSE(*taken);
  CHECK_FALSE(fs::exists(world.directory()));
  CHECK(count_of(world.planted.scratch().path()) == 1);  // only proc
}

TEST_CASE("untrusted files are left out and reported", "[snapshot][hostile]") {
  World world;
  SECTION("a link") {
    world.planted.put("secret", "1000 10 secret\n");
    fs::create_symlink(world.planted.path("secret"), world.planted.path("root/tmp/perf-3.map"));
  }
  SECTION("a FIFO") {
    REQUIRE(::mkfifo(world.planted.path("root/tmp/perf-3.map").c_str(), 0666) == 0);
  }
  SECTION("a huge sparse file") {
    const std::string map = world.planted.put("root/tmp/perf-3.map", "1000 10 a\n");
    REQUIRE(::truncate(map.c_str(), off_t{8} << 30) == 0);
  }
  SECTION("a file of another user") {
    const std::string map = world.planted.put("root/tmp/perf-3.map", "1000 10 a\n");
    if (::geteuid() != 0 || ::chown(map.c_str(), 12345, 12345) != 0) {
      SUCCEED("only root can make a file of somebody else");
      return;
    }
  }
  SECTION("a map that is older than the process") {
    const std::string map = world.planted.put("root/tmp/perf-3.map", "1000 10 a\n");
    const timespec old[2] = {{1, 0}, {1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, map.c_str(), old, 0) == 0);
  }
  const TakenSnapshot taken = world.taken();
  CHECK(taken.manifest.files.empty());
  REQUIRE(taken.manifest.left_out.size() == 1);
  CHECK(taken.manifest.left_out[0].find("perf-3.map") != std::string::npos);
}

TEST_CASE("a file that exceeds the size limit is cut after a whole line", "[snapshot][hostile]") {
  World world;
  world.planted.put("root/tmp/perf-3.map", "1000 10 one\n2000 10 two\n");
  const TakenSnapshot taken = world.taken({.max_bytes = 20});
  REQUIRE(taken.manifest.files.size() == 1);
  CHECK(taken.manifest.files[0].size == 12);
  CHECK(taken.manifest.files[0].cut == 12);
}

TEST_CASE("a bundle with links or FIFOs in place of files is refused without blocking",
          "[snapshot][hostile]") {
  World world;
  world.planted.put("root/tmp/perf-3.map", "1000 10 name\n");
  world.taken();
  const std::string file =
      GENERATE(as<std::string>(), "proc", "tmp", "proc/42", "proc/42/maps", "proc/42/status",
               "proc/42/stat", "proc/stat", "proc/42/root", "manifest.json");
  const bool fifo = GENERATE(false, true);
  CAPTURE(file, fifo);
  const std::string path = world.directory() + "/" + file;
  const std::string aside = world.planted.scratch() / "aside";
  if (fs::exists(path)) {
    fs::rename(path, aside);
  } else {
    fs::create_directory(aside);
  }
  if (fifo) {
    REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
  } else {
    fs::create_symlink(aside, path);
  }
  const auto snapshot = Snapshot::open(world.directory());
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == Errc::refused);
}

TEST_CASE("a directory without a manifest is not a snapshot", "[snapshot]") {
  const test::Scratch scratch;
  CHECK_FALSE(Snapshot::is_at(scratch.path()));
  CHECK_FALSE(Snapshot::is_at(scratch / "nothing"));
  CHECK(Snapshot::open(scratch.path()).error().code == Errc::unsupported);
  CHECK(Snapshot::open(scratch / "nothing").error().code == Errc::not_found);
}

TEST_CASE("a snapshot of our own process contains its modules and its vdso", "[snapshot]") {
  const test::Scratch scratch;
  const auto process = ProcSource::open(::getpid());
  REQUIRE(process);
  const auto taken = take_snapshot(**process, {.tmp = scratch.path()}, scratch / "bundle");
  REQUIRE(taken);
  REQUIRE(*taken);
  const auto snapshot = Snapshot::open(scratch / "bundle");
  REQUIRE(snapshot);
  CHECK(snapshot->manifest().executable == fs::read_symlink("/proc/self/exe"));
  const auto modules = snapshot->build_ids();
  CHECK(std::any_of(modules.begin(), modules.end(), [](const SnapshotModule& one) {
    return one.path.find("libc.so") != std::string::npos && one.build_id.size() == 20;
  }));
  CHECK(snapshot->build_id_of("/no/such/file").empty());
  const auto vdso = snapshot->vdso();
  REQUIRE(vdso);
  REQUIRE(*vdso);
  CHECK(
      (*vdso)->text().starts_with("\x7f"
                                  "ELF"));
  CHECK_FALSE(snapshot->build_id_of("[vdso]").empty());
}

}  // namespace perfmap::snapshot_test
