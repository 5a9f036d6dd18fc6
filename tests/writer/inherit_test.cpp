// SPDX-License-Identifier: MIT
// A child's map that begins with its parent's entries: when it is created, and from what.

#include <dirent.h>
#include <fstream>
#include <string>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::bare_clone;
using test::count_entries;
using test::in_child;
using test::own_map;
using test::read_file;
using test::Scratch;
using test::use_map_in;
using test::wait_for;
using test::write_entry;
using test::write_many;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::size_t files_in(const std::string& path) {
  std::size_t count = 0;
  DIR* const directory = ::opendir(path.c_str());
  while (directory != nullptr && ::readdir(directory) != nullptr) ++count;
  if (directory != nullptr) ::closedir(directory);
  return count;
}

}  // namespace

TEST_CASE("the copy is made at the child's first entry or init, and not by flush or fini",
          "[writer][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit, 4096);
          write_many(5);
          const auto first_call = [&](int inherited, auto call) {
            return in_child(
                [&] {
                  const std::string mine = own_map(scratch, ::getpid());
                  if (exists(mine) || call() != 0) return 1;
                  return exists(mine) == (inherited != 0) &&
                                 count_entries(read_file(mine))[0] == inherited
                             ? 0
                             : 2;
                },
                spawn);
          };
          const int flushed = first_call(0, [] { return ProcessMap::flush(); });
          const int closed = first_call(0, [] { return ProcessMap::fini(); });
          const int opened = first_call(5, [] {
            return ProcessMap::init() == 0 && ProcessMap::start() == MapStart::inherited ? 0 : 1;
          });
          return opened * 100 + flushed * 10 + closed;
        }) == 0);
}

TEST_CASE("a copy includes the parent's last entry even if another process has appended",
          "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit);
          if (write_entry(0, 0) != 0) return 1;
          std::ofstream(own_map(scratch, ::getpid()), std::ios::app)
              << "9000 10 an entry that the writer has not counted\n";
          if (write_entry(0, 1) != 0) return 2;
          // Without the handlers of fork(2), only the shared file offset tells how much to copy.
          return in_child(
              [&] {
                if (ProcessMap::init() != 0) return 3;
                const std::string mine = read_file(own_map(scratch, ::getpid()));
                return mine.ends_with("1000 10 " + test::entry_name(0, 1) + "\n") ? 0 : 4;
              },
              bare_clone);
        }) == 0);
}

TEST_CASE("a copy needs neither the living parent nor the name of its map", "[writer][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit, 4096);
          write_many(3);
          ProcessMap::flush();
          write_entry(0, 3);  // stays in the buffer
          const pid_t parent = ::getpid();
          ::unlink(own_map(scratch, parent).c_str());
          if (spawn() != 0) ::_exit(0);  // without a flush
          while (::getppid() == parent) ::usleep(1000);
          if (spawn() != 0) ::_exit(0);  // again, without a call in between
          const int written = write_entry(0, 4) | ProcessMap::flush();
          const pid_t self = ::getpid();
          ::_exit(written == 0 && ::write(ends[1], &self, sizeof self) == sizeof self ? 0 : 1);
          return 0;
        }) == 0);
  ::close(ends[1]);
  pid_t grandchild = 0;
  REQUIRE(::read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  ::close(ends[0]);
  auto found = count_entries(read_file(own_map(scratch, grandchild)));
  CHECK(found[0] == 5);
  CHECK(found[-1] == 0);
}

TEST_CASE("fresh: a child has no map until it writes, and not its parent's descriptor",
          "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::fresh);
          write_many(1);
          return in_child([&] {
            if (files_in(scratch.path()) != 3) return 1;  // ., .., the parent's map
            if (ProcessMap::flush() != 0 || ProcessMap::fini() != 0) return 2;
            if (ProcessMap::start() != MapStart::none) return 3;
            if (files_in(scratch.path()) != 3) return 4;
            for (int fd = 3; fd < 64; ++fd) {
              char name[256] = {};
              const std::string link = "/proc/self/fd/" + std::to_string(fd);
              const ssize_t size = ::readlink(link.c_str(), name, sizeof name - 1);
              if (size > 0 && std::string(name).starts_with(scratch.path())) return 5;
            }
            return ProcessMap::init() == 0 && files_in(scratch.path()) == 4 ? 0 : 6;
          });
        }) == 0);
}

TEST_CASE("the map's descriptor is closed on exec", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit);
          write_many(1);
          const std::string pattern = scratch.path();
          const char* const script =
              "for f in /proc/$$/fd/*; do readlink $f; done | grep -c \"$0\"";
          const pid_t child = ::vfork();
          if (child == 0) {
            ::execl("/bin/sh", "sh", "-c", script, pattern.c_str(), nullptr);
            ::_exit(9);
          }
          if (WEXITSTATUS(wait_for(child)) != 1) return 1;  // grep found none
          if (write_entry(0, 1) != 0 || files_in(scratch.path()) != 3) return 2;
          return count_entries(read_file(own_map(scratch, ::getpid())))[0] == 2 ? 0 : 3;
        }) == 0);
}

}  // namespace perfmap
