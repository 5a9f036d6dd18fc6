// SPDX-License-Identifier: MIT
// Snapshots of living processes, and Garbage with living processes.

#include "perfmap/profile/snapshot.hpp"

#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>

#include "perfmap/profile/garbage.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"
#include "support/stepped_child.hpp"

namespace perfmap {
namespace {

using test::Child;
using test::Scratch;

TakenSnapshot take(pid_t pid, const Roots& roots, const std::string& directory) {
  const auto process = ProcSource::open(pid, roots);
  REQUIRE(process);
  REQUIRE(*process);
  auto taken = take_snapshot(**process, roots, directory);
  REQUIRE(taken);
  REQUIRE(*taken);
  return **std::move(taken);
}

std::string name_in(const std::string& directory, Address address) {
  const auto snapshot = Snapshot::open(directory);
  REQUIRE(snapshot);
  const auto process = ProcSource::open(snapshot->pid(), snapshot->roots());
  REQUIRE(process);
  REQUIRE(*process);
  const auto jit = JitSources::find(**process, {.roots = snapshot->roots(), .any_owner = true});
  REQUIRE(jit);
  REQUIRE(*jit);
  const Resolution answer = (*jit)->find({.address = address});
  return answer.found ? std::string(answer.found->name) : "-";
}

}  // namespace

TEST_CASE("a snapshot of a writing process can be used after the process has ended", "[snapshot]") {
  const Scratch scratch;
  const std::string tmp = scratch / "tmp";
  std::filesystem::create_directories(scratch / "elsewhere");
  std::filesystem::create_directories(tmp);
  Child child([&] {
    static auto map =
        *MapWriter::open(tmp + "/perf-" + std::to_string(::getpid()) + ".map", {.mapped = true});
    static auto dump = *JitdumpWriter::open_own(scratch / "elsewhere");
    map.write(0x1000, 0x10, "in the map");
    dump.load({.start = 0x2000, .size = 0x10, .name = "in the dump"});
    return std::uint64_t{1};
  });
  const TakenSnapshot taken = take(child.pid(), {.tmp = tmp}, scratch / "bundle");
  REQUIRE(taken.manifest.files.size() >= 2);
  CHECK(taken.manifest.files[0].kind == SnapshotFile::Kind::map);
  CHECK(taken.manifest.files[0].size < 100);  // without the filler of the writer
  CHECK(taken.manifest.files[1].kind == SnapshotFile::Kind::dump);
  CHECK(taken.manifest.start == ProcSource::open(child.pid()).value()->start());
  child.end();
  std::filesystem::remove_all(scratch / "elsewhere");
  std::filesystem::remove_all(tmp);
  std::filesystem::rename(scratch / "bundle", scratch / "moved");
  CHECK(name_in(scratch / "moved", 0x1004) == "in the map");
  CHECK(name_in(scratch / "moved", 0x2004) == "in the dump");
  CHECK(name_in(scratch / "moved", 0x3000) == "-");
}

TEST_CASE("a snapshot includes .NET's list of images, without an incomplete last line",
          "[snapshot]") {
  const Scratch scratch;
  const std::string tmp = scratch / "tmp";
  std::filesystem::create_directories(tmp);
  const std::string list = "ImageLoad;/srv/a.dll;{0};0x7f00;\n";
  Child child([&] {
    std::ofstream(tmp + "/perfinfo-" + std::to_string(::getpid()) + ".map") << list << "ImageLo";
    return std::uint64_t{1};
  });
  const TakenSnapshot taken = take(child.pid(), {.tmp = tmp}, scratch / "bundle");
  REQUIRE(!taken.manifest.files.empty());
  const SnapshotFile& file = taken.manifest.files[0];
  CHECK(file.kind == SnapshotFile::Kind::images);
  CHECK(file.path == "tmp/perfinfo-" + std::to_string(child.pid()) + ".map");
  CHECK(file.size == list.size());
  CHECK(file.cut == 7);
  CHECK(taken.manifest.left_out.empty());
  CHECK(Snapshot::open(scratch / "bundle").has_value());
  child.end();
}

TEST_CASE("a link in place of the list of images is not followed", "[snapshot][hostile]") {
  const Scratch scratch;
  const std::string tmp = scratch / "tmp";
  std::filesystem::create_directories(tmp);
  std::ofstream(scratch / "secret") << "secret\n";
  Child child([&] {
    const std::string link = tmp + "/perfinfo-" + std::to_string(::getpid()) + ".map";
    std::filesystem::create_symlink(scratch / "secret", link);
    return std::uint64_t{1};
  });
  const TakenSnapshot taken = take(child.pid(), {.tmp = tmp}, scratch / "bundle");
  for (const SnapshotFile& file : taken.manifest.files) {
    CHECK(file.kind != SnapshotFile::Kind::images);
  }
  CHECK(taken.manifest.left_out.size() == 1);
  child.end();
}

TEST_CASE("a snapshot includes the files of the process's parents", "[snapshot]") {
  const Scratch scratch;
  const std::string tmp = scratch / "tmp";
  std::filesystem::create_directories(tmp);
  const auto map_of = [&](pid_t pid) { return tmp + "/perf-" + std::to_string(pid) + ".map"; };
  void* const code =
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(code != MAP_FAILED);
  const auto at = reinterpret_cast<Address>(code);
  auto writer = *MapWriter::open(map_of(::getpid()));
  writer.write(at, 0x10, "inherited");
  REQUIRE(writer.flush());  // or the child inherits the buffer and writes it
  Child child([&] {
    static auto own = *MapWriter::open(map_of(::getpid()));
    own.write(at + 0x1000, 0x10, "own");
    static_cast<void>(own.flush());
    return std::uint64_t{1};
  });
  const TakenSnapshot taken = take(child.pid(), {.tmp = tmp}, scratch / "bundle");
  ::munmap(code, 8192);
  CHECK(taken.manifest.parents.front() == ::getpid());
  CHECK(taken.manifest.left_out.empty());
  child.end();
  std::filesystem::remove_all(tmp);
  const auto snapshot = Snapshot::open(scratch / "bundle");
  REQUIRE(snapshot);
  CHECK(snapshot->manifest().parents == taken.manifest.parents);
  ProcessTracker tracker({.roots = snapshot->roots(), .any_owner = true, .open_module = {}});
  REQUIRE(tracker.import(snapshot->pid()));
  REQUIRE(tracker.refresh_jit(snapshot->pid()));
  Symbolizer symbolizer(tracker, {});
  const auto name = [&](Address address) {
    const AddressName answer = symbolizer.find(snapshot->pid(), {.address = address});
    return answer.entry ? std::string(answer.entry->name) : "-";
  };
  CHECK(name(at + 4) == "inherited");
  CHECK(name(at + 0x1004) == "own");
}

TEST_CASE("a snapshot of a process in a container uses the pid outside", "[snapshot]") {
  const Scratch scratch;
  Child child([] {
    return test::in_container([] { std::ofstream("/tmp/perf-1.map") << "1000 10 inside\n"; });
  });
  if (child.reported() == 0) {
    test::skip("no pid and mount namespaces may be made here");
    return;
  }
  const auto pid = static_cast<pid_t>(child.reported());
  const TakenSnapshot taken = take(pid, {}, scratch / "bundle");
  CHECK(taken.manifest.namespace_pids == std::vector<pid_t>{pid, 1});
  test::end_container(pid);
  child.end();
  CHECK(name_in(scratch / "bundle", 0x1000) == "inside");
}

TEST_CASE("a living process's files stay, also if they are named by its pid in a container",
          "[gc]") {
  const Scratch scratch;
  // The container shares this directory with us.
  Child child([&] { return test::in_container([] {}); });
  if (child.reported() == 0) {
    test::skip("no pid and mount namespaces may be made here");
    return;
  }
  const auto pid = static_cast<pid_t>(child.reported());
  // In the container /tmp is another one, so this directory does not exist there.
  scratch.write("perf-1.map", "1000 10 inside\n");
  scratch.write("perf-" + std::to_string(pid) + ".map", "1000 10 own\n");
  const auto garbage = Garbage::find({.roots = {.tmp = scratch.path()}, .one_namespace = true});
  REQUIRE(garbage);
  REQUIRE(garbage->files().size() == 2);
  for (const GarbageFile& file : garbage->files()) CHECK(file.why == GarbageWhy::alive);
  test::end_container(pid);
  child.end();
  const auto later = Garbage::find({.roots = {.tmp = scratch.path()}, .one_namespace = true});
  REQUIRE(later);
  CHECK(later->files()[1].why == GarbageWhy::dead);
}

TEST_CASE("a dead process's file that a living process has open or mapped stays", "[gc]") {
  const Scratch scratch;
  const std::string path = scratch.write("perf-4194304.map", "1000 10 name\n");
  const std::string mapped = scratch.write("jit-4194304.dump", std::string(4096, 'x'));
  Child child([&] {
    static auto writer = *MapWriter::open(path);
    const int fd = ::open(mapped.c_str(), O_RDONLY | O_CLOEXEC);
    void* const at = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    return std::uint64_t{at != MAP_FAILED};
  });
  REQUIRE(child.reported() == 1);
  const GarbageOptions options{.roots = {.tmp = scratch.path()}, .one_namespace = true};
  const auto garbage = Garbage::find(options);
  REQUIRE(garbage);
  REQUIRE(garbage->files().size() == 2);
  for (const GarbageFile& file : garbage->files()) {
    CHECK(file.why == GarbageWhy::in_use);
    CHECK(file.user == child.pid());
  }
  child.end();
  auto later = Garbage::find(options);
  REQUIRE(later);
  for (const GarbageFile& file : later->files()) CHECK(later->remove(file));
  CHECK(std::filesystem::is_empty(scratch.path()));
}

}  // namespace perfmap
