// SPDX-License-Identifier: MIT
// Which files a recording copies, and which it removes.

#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/planted_process.hpp"
#include "support/scratch.hpp"

namespace perfmap::kept_names_test {
namespace {

using test::Scratch;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Before any test wrote a file, however slow the machine is.
const std::int64_t kBegan = now_ns();

/// The pid of a process that has ended.
pid_t ended_pid() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  test::wait_for(pid);
  return pid;
}

ProcessInfo process_of(pid_t pid) {
  ProcessInfo process;
  process.pid = pid;
  return process;
}

std::string log_of(pid_t pid, const std::string& isolate) {
  return "isolate-0x" + isolate + "-" + std::to_string(pid) + "-v8.log";
}

RecordingDirectory directory_in(const Scratch& scratch) {
  Result<RecordingDirectory> directory = RecordingDirectory::create(scratch / "rec");
  REQUIRE(directory);
  return *std::move(directory);
}

Input input_of(const std::string& path) {
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  return *std::move(input);
}

void make_older(const std::string& path) {
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

}  // namespace

TEST_CASE("a file is copied once, under the pid of the recording", "[record]") {
  const Scratch scratch;
  NameKeeper keeper(directory_in(scratch));
  const std::string map = scratch.write("perf-3.map", "1000 10 f\n");
  std::filesystem::create_hard_link(map, scratch / "perf-4.map");
  keeper.add(42, input_of(map), false);
  keeper.add(43, input_of(scratch / "perf-4.map"), false);
  keeper.add(42, input_of(scratch.write("jit-7-3.dump", "dump")), true);
  REQUIRE(keeper.files().size() == 2);
  CHECK(test::read_file(scratch / "rec/perf-42.map") == "1000 10 f\n");
  CHECK(test::read_file(scratch / "rec/jit-7-3.dump") == "dump");
  struct stat status {};
  REQUIRE(::stat((scratch / "rec/perf-42.map").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(keeper.failures().empty());
}

TEST_CASE("a copy replaces nothing in the directory, and follows no link", "[record]") {
  const Scratch scratch;
  NameKeeper keeper(directory_in(scratch));
  const std::string victim = scratch.write("victim", "mine");
  std::filesystem::create_symlink(victim, scratch / "rec/perf-42.map");
  keeper.add(42, input_of(scratch.write("perf-3.map", "1000 10 f\n")), false);
  CHECK(keeper.files().empty());
  CHECK(keeper.failures().size() == 1);
  CHECK(test::read_file(victim) == "mine");
}

TEST_CASE("a log with addresses of code becomes a perf map", "[record]") {
  const Scratch scratch;
  const RecordingDirectory directory = directory_in(scratch);
  std::filesystem::create_directory(scratch / "written");
  const std::string log =
      "[1] {jit-backend-addr\nLoop 1 (f;/t.py:2-4~#12 FOR_ITER) has address 0x1000 to 0x1040 "
      "(bootstrap 0x1000)\n[2] jit-backend-addr}\n";
  scratch.write("written/pypy-42.log", log);
  scratch.write("written/pypy-43.log", log);  // not a recorded process
  scratch.write("written/pypy-45.log", "");
  scratch.write("written/pypy-46.log", log.substr(0, 60));
  const std::string secret = scratch.write("secret", log);
  std::filesystem::create_symlink(secret, scratch / "written/pypy-44.log");
  REQUIRE(::mkfifo((scratch / "written/pypy-47.log").c_str(), 0600) == 0);
  std::vector<ProcessInfo> processes;
  for (const pid_t pid : {42, 44, 45, 46, 47, 48}) processes.push_back(process_of(pid));
  NameKeeper keeper(directory);
  const RecordedUsers users;
  keeper.add_logs(scratch / "written", processes, users);
  CHECK(test::read_file(scratch / "rec/perf-42.map") ==
        "1000 40 Loop 1 (f;/t.py:2-4~#12 FOR_ITER)\n");
  for (const char* const name : {"43", "44", "47", "48"}) {
    CHECK_FALSE(std::filesystem::exists(scratch / ("rec/perf-" + std::string(name) + ".map")));
  }
  CHECK(keeper.failures().size() == 2);  // the link and the FIFO
  if (::geteuid() == 0) {
    const std::string foreign = scratch.write("written/pypy-49.log", log);
    REQUIRE(::chown(foreign.c_str(), 65534, 65534) == 0);
    const std::vector<ProcessInfo> one = {process_of(49)};
    CHECK(keeper.add_logs(scratch / "written", one, users) == 0);
    std::filesystem::create_directories(scratch / "proc/49");
    REQUIRE(::chown((scratch / "proc/49").c_str(), 65534, 65534) == 0);
    RecordedUsers seen({.proc = scratch / "proc"});
    const std::vector<pid_t> pids = {49};
    seen.look(pids);
    CHECK(keeper.add_logs(scratch / "written", one, seen) == 1);
  }
  CHECK(std::filesystem::exists(secret));
}

TEST_CASE("the files of a container are kept after its end", "[record]") {
  const test::PlantedProcess planted;
  const Scratch scratch;
  const pid_t pid = test::PlantedProcess::kPid;
  const std::vector<ProcessInfo> processes = {process_of(pid)};
  const std::string text = "1000 10 f\n";
  const std::string elsewhere = scratch.write("elsewhere", text);
  const auto plant = GENERATE(0, 1, 2, 3, 4, 5, 6, 7);
  CAPTURE(plant);
  const std::string map = planted.path("root/tmp/perf-3.map");
  if (plant == 0) planted.put("root/tmp/perf-3.map", text);
  if (plant == 1) std::filesystem::create_symlink(elsewhere, map);
  if (plant == 2) std::filesystem::create_hard_link(elsewhere, map);
  if (plant == 3) REQUIRE(::mkfifo(map.c_str(), 0600) == 0);
  if (plant == 4) planted.put("root/tmp/perf-42.map", text);  // the pid outside
  if (plant == 5) {
    if (::geteuid() != 0) return;
    planted.put("root/tmp/perf-3.map", text);
    REQUIRE(::chown(map.c_str(), 65534, 65534) == 0);
  }
  if (plant == 6) planted.put("root/tmp/jit-9-3-abcDEF", text);  // a jitdump of Bun
  if (plant == 7) {
    planted.put("root/tmp/perf-3.map", text);
    make_older(map);
  }
  NameKeeper keeper(directory_in(scratch));
  ForeignMounts mounts(planted.roots());
  RecordedPlaces places(planted.roots());
  const std::vector<pid_t> pids = {pid, 43};
  for (int i = 0; i < 2; ++i) {
    places.look(pids);
    mounts.look(pids, places);
  }
  CHECK(mounts.keep(keeper, processes, places) == 0);  // it lives
  // The directory stays as long as it is held, as when a mount namespace ends.
  std::filesystem::rename(planted.path("root/tmp"), scratch / "held");
  planted.vanish();
  CHECK(mounts.keep(keeper, {}, places) == 0);  // it was not recorded
  CHECK(mounts.keep(keeper, processes, places) == (plant == 0 || plant == 6 ? 1 : 0));
  CHECK(test::read_file(scratch / "rec/perf-42.map") == (plant == 0 ? text : ""));
  CHECK(test::read_file(scratch / "rec/jit-9-3-abcDEF") == (plant == 6 ? text : ""));
  CHECK(keeper.failures().empty());
}

namespace {

/// Processes 42 and `later`, each 3 in a pid namespace of its own, with the /tmp of this system.
struct SharedTmp {
  SharedTmp() {
    std::filesystem::create_directory(scratch / "tmp");
    map = scratch.write("tmp/perf-3.map", "1000 10 f\n");
    std::filesystem::remove(planted.path("root/tmp"));
    std::filesystem::create_directory_symlink(scratch / "tmp", planted.path("root/tmp"));
    std::filesystem::create_directories(proc + "/42/fd");
    std::filesystem::copy(
        proc + "/42", proc + "/" + std::to_string(later),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    first.until = second.since = 10;
    first.since = 5;
    second.until = 20;
  }
  /// The kernel's links have the modes of the descriptors; those of a file system are writable.
  void open_by(pid_t pid) const {
    const std::string directory = proc + "/" + std::to_string(pid) + "/fd";
    std::filesystem::create_directories(directory);
    std::filesystem::create_symlink(map, directory + "/9");
  }
  void look() {
    const std::vector<pid_t> pids = {42, later};
    places.look(pids);
    mounts.look(pids, places);
  }
  void end(pid_t pid) const { std::filesystem::remove_all(proc + "/" + std::to_string(pid)); }
  std::size_t keep() {
    end(42);
    end(later);
    return mounts.keep(keeper, {{first, second}}, places);
  }
  /// As if it had been recorded with variables for its runtime.
  std::vector<std::string> removed(const std::vector<KeptFile>& files) const {
    const LeftFiles left{.named = {Runtime::v8}, .tmp = scratch / "tmp", .places = &places};
    return remove_left_files(left, files, {}).paths;
  }

  const test::PlantedProcess planted;
  const Scratch scratch;
  const std::string proc = planted.roots().proc;
  const pid_t later = ended_pid();
  std::string map;
  RecordedPlaces places{{.proc = proc, .tmp = scratch / "tmp"}};
  ForeignMounts mounts{{.proc = proc, .tmp = scratch / "tmp"}};
  ProcessInfo first = process_of(42), second = process_of(later);
  NameKeeper keeper{directory_in(scratch), &places};
};

}  // namespace

TEST_CASE("a file in the same /tmp is that of the process that wrote it", "[record]") {
  SharedTmp shared;
  const auto& missing = shared.keeper.missing();
  SECTION("and of none, if it was not seen to write it") {
    shared.look();
    CHECK(shared.keep() == 0);
    REQUIRE(missing.size() == 2);
    CHECK(missing[0].source == shared.map);
    CHECK(missing[0].why.starts_with("process 42 was not seen to write it alone"));
    return;
  }
  SECTION("and not of the process outside that has its pid") {
    shared.open_by(42);
    shared.open_by(3);
    shared.look();
    CHECK(shared.keep() == 0);
    CHECK(missing.size() == 2);
    return;
  }
  SECTION("the first one") {
    shared.open_by(42);
    shared.look();
    CHECK(shared.keep() == 1);
    CHECK(shared.keeper.files()[0].pid == 42);
    CHECK(shared.keeper.files()[0].source == shared.map);
    CHECK(missing.empty());
    // It is removed, although it has another pid in its name; not if the process outside writes it.
    shared.open_by(3);
    CHECK(shared.removed(shared.keeper.files()).empty());
    shared.end(3);
    CHECK(shared.removed(shared.keeper.files()) == std::vector{shared.map});
    return;
  }
  shared.open_by(42);
  shared.look();
  shared.end(42);
  shared.open_by(shared.later);
  shared.look();
  const std::string both = "processes 42 and " + std::to_string(shared.later);
  const std::string other = "processes " + std::to_string(shared.later) + " and 42";
  SECTION("the later one") {
    CHECK(shared.keep() == 1);
    CHECK(shared.keeper.files()[0].pid == shared.later);
    REQUIRE(missing.size() == 1);
    CHECK(missing[0].pid == 42);
    CHECK(missing[0].why.starts_with(
        both + " wrote it, each as process 3 of its pid namespace, so the JIT code of the first"));
  }
  SECTION("neither, if both wrote it") {
    shared.first.until = 11;
    CHECK(shared.keep() == 0);
    REQUIRE(shared.keeper.failures().size() == 1);
    const std::string why = other + " wrote it at the same time, each as process 3 of its pid";
    CHECK(
        shared.keeper.failures()[0].message().starts_with("cannot use " + shared.map + ": " + why));
    REQUIRE(missing.size() == 2);
    CHECK(missing[0].source == shared.map);
    CHECK(missing[0].why.starts_with(why));
    CHECK(missing[0].pid + missing[1].pid == 42 + shared.later);
    // It has names of both processes, and both have ended.
    CHECK(shared.removed(shared.keeper.refused()) == std::vector{shared.map});
  }
}

TEST_CASE("only logs that a recorded and ended process left are removed", "[record]") {
  const Scratch scratch;
  const pid_t ended = ended_pid();
  const pid_t other = ended_pid();
  const std::string victim = scratch.write("victim", "mine");
  scratch.write(log_of(ended, "1"), "");
  scratch.write(log_of(other, "2"), "");       // not recorded
  scratch.write(log_of(::getpid(), "3"), "");  // lives
  std::filesystem::create_symlink(victim, scratch / log_of(ended, "4"));
  std::filesystem::create_hard_link(victim, scratch / log_of(ended, "5"));
  make_older(scratch.write(log_of(ended, "6"), ""));
  REQUIRE(::mkfifo((scratch / log_of(ended, "7")).c_str(), 0600) == 0);
  std::filesystem::create_directory(scratch / log_of(ended, "8"));
  scratch.write(log_of(ended, "9") + "x", "");
  scratch.write("isolate-0x1-" + std::to_string(ended) + "x-v8.log", "");
  scratch.write("isolate-0x1--v8.log", "");
  scratch.write("isolate-0x1-99999999999999999999-v8.log", "");
  if (::geteuid() == 0) {
    const std::string foreign = scratch.write(log_of(ended, "a"), "");
    REQUIRE(::chown(foreign.c_str(), 65534, 65534) == 0);
  }
  const auto before = std::distance(std::filesystem::directory_iterator(scratch.path()), {});
  const LeftFiles left{.named = {Runtime::hotspot, Runtime::v8},
                       .tmp = scratch.path(),
                       .working_directory = scratch.path(),
                       .began_ns = kBegan};
  const std::vector<ProcessInfo> processes = {process_of(ended), process_of(::getpid())};
  CHECK(remove_left_files(left, {}, processes).paths ==
        std::vector<std::string>{scratch / log_of(ended, "1")});
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == before - 1);
  CHECK(test::read_file(victim) == "mine");
  LeftFiles none = left;
  none.named = {};
  scratch.write(log_of(ended, "1"), "");
  CHECK(remove_left_files(none, {}, processes).paths.empty());
}

TEST_CASE("logs in other working directories, named by inner pids, are removed", "[record]") {
  const Scratch scratch;
  const pid_t ended = ended_pid();
  const std::string pid = std::to_string(ended);
  std::filesystem::create_directories(scratch / ("proc/" + pid));
  std::filesystem::create_directory(scratch / "work");
  std::filesystem::create_directory_symlink(scratch / "work", scratch / ("proc/" + pid + "/cwd"));
  scratch.write("proc/" + pid + "/stat",
                pid + " (node) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1000 9 9 9\n");
  scratch.write("proc/" + pid + "/status", "Name:\tnode\nNSpid:\t" + pid + "\t7\n");
  std::filesystem::create_directories(scratch / ("proc/" + pid + "/fd"));
  std::filesystem::create_symlink(scratch.write("work/" + log_of(7, "1"), ""),
                                  scratch / ("proc/" + pid + "/fd/9"));
  RecordedPlaces places({.proc = scratch / "proc"});
  const std::vector<pid_t> pids = {ended, 43};
  places.look(pids);
  places.look(pids);
  REQUIRE(places.places().size() == 1);
  std::filesystem::remove_all(scratch / "proc");
  scratch.write("work/" + log_of(ended, "2"), "");
  scratch.write("work/" + log_of(7, "4"), "");  // of the process that is 7 here
  scratch.write("work/" + log_of(8, "3"), "");
  LeftFiles left{.named = {Runtime::v8},
                 .tmp = scratch.path(),
                 .working_directory = scratch.path(),
                 .places = &places,
                 .began_ns = kBegan};
  const std::vector<ProcessInfo> processes = {process_of(ended)};
  CHECK(remove_left_files(left, {}, processes).paths.size() == 2);
  CHECK(std::filesystem::exists(scratch / ("work/" + log_of(8, "3"))));
  CHECK(std::filesystem::exists(scratch / ("work/" + log_of(7, "4"))));
}

TEST_CASE("the users of processes are known after their end", "[record]") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "proc/42");
  RecordedUsers users({.proc = scratch / "proc"});
  const std::vector<pid_t> pids = {42, 43};
  users.look(pids);
  std::filesystem::remove_all(scratch / "proc");
  users.look(pids);
  CHECK(users.ran_as(42, ::geteuid()));
  CHECK_FALSE(users.ran_as(42, ::geteuid() + 1));
  CHECK_FALSE(users.ran_as(43, ::geteuid()));
}

TEST_CASE("root removes for another user only that user's files, where that user may", "[record]") {
  if (::geteuid() != 0) return;
  constexpr uid_t kOther = 65534;
  const Scratch scratch;
  const auto make = [&](const std::string& directory, mode_t mode) {
    std::filesystem::create_directory(scratch / directory);
    REQUIRE(::chmod((scratch / directory).c_str(), mode) == 0);
  };
  REQUIRE(::chmod(scratch.path().c_str(), 0755) == 0);
  make("open", 01777);
  make("closed", 0755);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setgid(kOther) != 0 || ::setuid(kOther) != 0) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  RecordedUsers users;
  while (!users.ran_as(pid, kOther)) users.look({&pid, 1});
  ::kill(pid, SIGKILL);
  test::wait_for(pid);
  RecordedUsers seen_late;
  const auto removed = [&](const std::string& directory, uid_t owner, const RecordedUsers& known) {
    const std::string log = scratch.write(directory + "/" + log_of(pid, "1"), "");
    REQUIRE(::chown(log.c_str(), owner, owner) == 0);
    const LeftFiles left{.named = {Runtime::v8},
                         .tmp = scratch / "none",
                         .working_directory = scratch / directory,
                         .users = &known};
    return remove_left_files(left, {}, {{process_of(pid)}}).paths.size() == 1;
  };
  CHECK(removed("open", kOther, users));
  CHECK_FALSE(removed("closed", kOther, users));
  CHECK(removed("closed", 0, seen_late));  // of a process of which nothing else is known
  CHECK_FALSE(removed("closed", kOther, seen_late));
}

TEST_CASE("a copied dump is removed from the working directory of its process", "[record]") {
  const Scratch scratch, tmp;
  const pid_t ended = ended_pid();
  const auto dump = [&](pid_t pid) {
    const std::string name = "jit-" + std::to_string(pid) + ".dump";
    const Input input = input_of(scratch.write(name, "DTiJ"));
    return KeptFile{.name = name,
                    .source = input.name(),
                    .pid = pid,
                    .is_dump = true,
                    .size = 4,
                    .device = input.facts().device,
                    .inode = input.facts().inode};
  };
  const std::vector files = {dump(ended), dump(::getpid())};
  LeftFiles left{.tmp = tmp.path(), .working_directory = scratch.path(), .began_ns = kBegan};
  const RemovedFiles none = remove_left_files(left, files, {});  // no variable was set
  CHECK(none.paths.empty());
  CHECK(none.in_use.empty());
  left.named = {Runtime::v8};
  const RemovedFiles removed = remove_left_files(left, files, {});
  CHECK(removed.paths == std::vector{files[0].source});
  REQUIRE(removed.in_use.size() == 1);
  CHECK(removed.in_use[0].path == files[1].source);
  CHECK(removed.in_use[0].pid == ::getpid());
}

TEST_CASE("a copied file is removed only if it is still that file", "[record]") {
  const Scratch scratch;
  const pid_t ended = ended_pid();
  const auto kept = [&](pid_t pid, const std::string& name) {
    const Input input = input_of(scratch.write(name, "1000 10 f\n"));
    return KeptFile{.name = name,
                    .source = input.name(),
                    .pid = pid,
                    .size = 10,
                    .device = input.facts().device,
                    .inode = input.facts().inode};
  };
  const std::string name = "perf-" + std::to_string(ended) + ".map";
  LeftFiles left{.named = {Runtime::v8},
                 .tmp = scratch.path(),
                 .working_directory = scratch.path(),
                 .began_ns = kBegan};
  const auto removed = [&](const KeptFile& file) {
    return remove_left_files(left, std::vector{file}, {}).paths.size() == 1;
  };
  KeptFile file = kept(ended, name);
  CHECK(removed(file));
  CHECK_FALSE(std::filesystem::exists(scratch / name));
  CHECK_FALSE(removed(file));

  // Another file has the name now.
  file = kept(ended, name);
  std::filesystem::rename(scratch / name, scratch / "first");
  scratch.write(name, "of another process");
  CHECK_FALSE(removed(file));
  // A link to the file that was copied.
  std::filesystem::remove(scratch / name);
  std::filesystem::create_symlink(scratch / "first", scratch / name);
  CHECK_FALSE(removed(file));
  // A second name of it.
  std::filesystem::remove(scratch / name);
  std::filesystem::create_hard_link(scratch / "first", scratch / name);
  CHECK_FALSE(removed(file));
  std::filesystem::remove(scratch / name);

  file = kept(ended, name);
  make_older(scratch / name);
  CHECK_FALSE(removed(file));
  std::filesystem::remove(scratch / name);

  // A name that the user chose.
  CHECK_FALSE(removed(kept(ended, "mine.map")));
  // Of a living process: only if it was asked for the map.
  const KeptFile living = kept(::getpid(), "perf-" + std::to_string(::getpid()) + ".map");
  CHECK_FALSE(removed(living));
  left.asked = {::getpid()};
  CHECK(removed(living));
  // In another directory.
  scratch.write("below/x", "");
  CHECK_FALSE(removed(kept(ended, "below/" + name)));
}

}  // namespace perfmap::kept_names_test
