// SPDX-License-Identifier: MIT
// Entries that an earlier process with the same pid left: when they are removed, and when not.

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/own_map.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::in_child;
using test::own_map;
using test::read_file;
using test::Scratch;

constexpr std::string_view kOld = "1000 10 old\n";
constexpr std::string_view kNew = "2000 10 new\n";

void set_age(const std::string& path, time_t seconds) {
  const timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

/// Runs a process that finds a map which is `age` seconds old, and writes an entry. Returns its
/// MapStart if the contents of the map agree with that, else 100 or more.
template <class Prepare>
int start_with(time_t age, StaleMap stale, Prepare prepare) {
  const Scratch scratch;
  return in_child([&] {
    const std::string path = scratch.write("perf-" + std::to_string(::getpid()) + ".map", kOld);
    set_age(path, age);
    prepare(path);
    ProcessMap::configure({.directory = scratch.path(), .stale = stale});
    if (ProcessMap::start() != MapStart::none) return 100;
    if (ProcessMap::write(0x2000, 0x10, "new") != 0) return 101;
    const MapStart start = ProcessMap::start();
    const std::string expected =
        start == MapStart::emptied ? std::string(kNew) : std::string(kOld) + std::string(kNew);
    return read_file(path) == expected ? static_cast<int>(start) : 102;
  });
}
int start_with(time_t age, StaleMap stale = StaleMap::empty) {
  return start_with(age, stale, [](const std::string&) {});
}

}  // namespace

TEST_CASE("an earlier process's entries are removed; entries that may be ours stay", "[writer]") {
  CHECK(start_with(3600) == static_cast<int>(MapStart::emptied));
  CHECK(start_with(0) == static_cast<int>(MapStart::appended));
  CHECK(start_with(3600, StaleMap::keep) == static_cast<int>(MapStart::appended_kept));
}

TEST_CASE("a process that opens its map again keeps its own entries", "[writer]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          ProcessMap::configure({.directory = scratch.path()});
          ProcessMap::init();
          if (ProcessMap::start() != MapStart::made) return 1;
          ProcessMap::write(0x1000, 0x10, "old");
          ProcessMap::fini();
          ProcessMap::write(0x2000, 0x10, "new");
          if (ProcessMap::start() != MapStart::appended) return 2;
          const std::string text = read_file(own_map(scratch, ::getpid()));
          return text == std::string(kOld) + std::string(kNew) ? 0 : 3;
        }) == 0);
}

TEST_CASE("a map that another writer of this library has open stays, and MapStart reports it",
          "[writer]") {
  const auto other = [](const std::string& path) {
    static auto writer = MapWriter::open(path);
    if (!writer) ::_exit(200);
  };
  CHECK(start_with(3600, StaleMap::empty, other) == static_cast<int>(MapStart::appended_in_use));
}

TEST_CASE("a writer that has closed its file does not lock it any more", "[writer]") {
  const auto other = [](const std::string& path) {
    if (!MapWriter::open(path)) ::_exit(200);
  };
  CHECK(start_with(3600, StaleMap::empty, other) == static_cast<int>(MapStart::emptied));
}

TEST_CASE("a file with several names is refused", "[writer]") {
  const Scratch scratch;
  std::ofstream(scratch / "precious") << "what somebody keeps\n";
  CHECK(test::in_child([&] {
          ProcessMap::configure({.directory = scratch.path()});
          const std::string own = test::own_map(scratch, ::getpid());
          if (::link((scratch / "precious").c_str(), own.c_str()) != 0) return 1;
          if (ProcessMap::write(0x1000, 0x10, "mine") != -1 || errno != EMLINK) return 2;
          return test::read_file(own) == "what somebody keeps\n" ? 0 : 3;
        }) == 0);
}

TEST_CASE("a child that inherits does not begin with an earlier process's entries", "[writer]") {
  const Scratch scratch;
  const auto age = GENERATE(time_t{3600}, time_t{0});
  CHECK(in_child([&] {
          ProcessMap::configure({.directory = scratch.path(), .fork = ForkPolicy::inherit});
          ProcessMap::write(0x2000, 0x10, "new");
          return in_child(
              [&] {
                const std::string name = "perf-" + std::to_string(::getpid()) + ".map";
                const std::string path = scratch.write(name, kOld);
                set_age(path, age);
                if (ProcessMap::init() != 0) return 1;
                const std::string text = read_file(path);
                // Recent entries stay: another engine in this process may have written them.
                const bool stays = age == 0;
                const MapStart start = stays ? MapStart::appended : MapStart::inherited;
                if (ProcessMap::start() != start) return 2;
                return text == (stays ? std::string(kOld) : "") + std::string(kNew) ? 0 : 3;
              },
              test::bare_clone);
        }) == 0);
}

}  // namespace perfmap
