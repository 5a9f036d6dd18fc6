// SPDX-License-Identifier: MIT
// A child's own map that cannot be created, or not completely.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <dirent.h>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/limits.hpp"
#include "support/own_map.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::bare_clone;
using test::count_entries;
using test::in_child;
using test::limit_descriptors;
using test::limit_files;
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

TEST_CASE("a child without room for a copy reports EFBIG, leaves no file, and may try again",
          "[writer][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit);
          write_many(400);
          limit_files(5000);
          return in_child(
              [&] {
                const std::string mine = own_map(scratch, ::getpid());
                if (write_entry(1, 0) != -1 || errno != EFBIG) return 1;
                if (ProcessMap::init() != -1 || errno != EFBIG) return 2;
                if (exists(mine) || files_in(scratch.path()) != 3) return 3;
                limit_files(RLIM_INFINITY);
                if (write_entry(1, 0) != 0) return 4;
                auto found = count_entries(read_file(mine));
                return found[0] == 400 && found[1] == 1 && found[-1] == 0 ? 0 : 5;
              },
              spawn);
        }) == 0);
}

TEST_CASE("a copy onto a full disk fails and leaves no file", "[writer][fork]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
    test::skip("no small tmpfs may be mounted here");
    return;
  }
  CHECK(in_child([&] {
          use_map_in(disk, ForkPolicy::inherit);
          if (write_many(1700) != 0) return 1;  // more than half of the disk
          return in_child([&] {
            if (write_entry(1, 0) != -1 || errno != ENOSPC) return 2;
            return files_in(disk) == 3 ? 0 : 3;
          });
        }) == 0);
  ::umount(disk.c_str());
}

// UBSan's check of virtual calls needs descriptors of its own.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a child without a free descriptor reports EMFILE, and may try again", "[writer][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  CHECK(in_child([&] {
          use_map_in(scratch.path(), policy);
          write_many(2);
          limit_descriptors(3);
          return in_child([&] {
            if (write_entry(1, 0) != -1 || errno != EMFILE) return 1;
            limit_descriptors(100);
            if (write_entry(1, 0) != 0) return 2;
            auto found = count_entries(read_file(own_map(scratch, ::getpid())));
            return found[0] == (policy == ForkPolicy::inherit ? 2 : 0) && found[1] == 1 ? 0 : 3;
          });
        }) == 0);
}
#endif

TEST_CASE("a file planted at the path of a child's map is refused, with or without inheritance",
          "[writer][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  const auto refusal = [&](auto plant) {
    return in_child([&] {
      use_map_in(scratch.path(), policy);
      write_many(2);
      return in_child(
          [&] {
            plant(own_map(scratch, ::getpid()));
            return write_entry(1, 0) == -1 ? errno : 0;
          },
          bare_clone);
    });
  };
  const std::string victim = scratch.write("victim", "precious");
  CHECK(refusal([&](const std::string& path) {
          if (::symlink(victim.c_str(), path.c_str()) != 0) ::_exit(200);
        }) == ELOOP);
  CHECK(refusal([](const std::string& path) { ::mkdir(path.c_str(), 0700); }) == EISDIR);
  CHECK(refusal([](const std::string& path) { ::mkfifo(path.c_str(), 0600); }) == EINVAL);
  CHECK(read_file(victim) == "precious");
}

TEST_CASE("a removed or read-only directory is reported", "[writer][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  const std::string directory = scratch / "maps";
  ::mkdir(directory.c_str(), 0700);
  const auto refusal = [&](auto spoil) {
    return in_child([&] {
      use_map_in(directory, policy);
      if (write_many(2) != 0) return 200;
      return in_child(
          [&] {
            spoil();
            return write_entry(1, 0) == -1 ? errno : 0;
          },
          bare_clone);
    });
  };
  CHECK(refusal([&] {  // root may write anywhere, so become another user
          ::chmod(directory.c_str(), 0500);
          ::chmod(scratch.path().c_str(), 0711);
          if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(201);
        }) == EACCES);
  REQUIRE(::chmod(directory.c_str(), 0700) == 0);
  CHECK(refusal([&] { ::rename(directory.c_str(), (directory + "2").c_str()); }) == ENOENT);
}

TEST_CASE("a child that is killed leaves a complete copy or none", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit);
          if (write_many(3000) != 0) return 1;
          int copies = 0;
          // A child of a busy machine may need longer for a copy.
          for (int i = 0; i < 100 || copies == 0; ++i) {
            const pid_t child = bare_clone();
            if (child == 0) {
              for (int entry = 0;; ++entry) write_entry(1, entry);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 1500 + i / 100 * 1000));
            ::kill(child, SIGKILL);
            wait_for(child);
            const std::string mine = own_map(scratch, child);
            if (!exists(mine)) continue;
            ++copies;
            std::string text = read_file(mine);
            text.resize(text.rfind('\n') + 1);  // SIGKILL may truncate the last line
            auto found = count_entries(text);
            if (found[0] != 3000 || found[-1] != 0) return 2;
            ::unlink(mine.c_str());
          }
          return copies > 0 && files_in(scratch.path()) == 3 ? 0 : 3;
        }) == 0);
}

}  // namespace perfmap
