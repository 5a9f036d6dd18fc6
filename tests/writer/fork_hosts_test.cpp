// SPDX-License-Identifier: MIT
// Forks in host processes that have fork handlers or writers of their own, blocked writers, or
// descriptors that other code closes.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/own_map.hpp"
#include "support/skip.hpp"

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

std::string own_text(const Scratch& scratch) { return read_file(own_map(scratch, ::getpid())); }

}  // namespace

TEST_CASE("the host's own fork handlers may use the map", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::fresh);
          write_entry(0, 0);
          ::pthread_atfork([] { ProcessMap::fini(); }, [] { write_entry(0, 1); },
                           [] { write_entry(1, 0); });
          const int status = in_child([&] { return count_entries(own_text(scratch))[1] - 1; });
          auto found = count_entries(own_text(scratch));
          return status == 0 && found[0] == 2 && found[1] == 0 && found[-1] == 0 ? 0 : 1;
        }) == 0);
}

TEST_CASE("fork does not wait for a writer that is blocked on a full pipe", "[writer][fork]") {
  constexpr int kEntries = 5000;  // more than a pipe holds
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto writer = MapWriter::to_descriptor(ends[1], "pipe");
  REQUIRE(writer);
  std::atomic<int> written{0};
  std::thread thread([&] {
    while (written < kEntries && writer->write(0x1000, 0x10, "waits")) ++written;
  });
  pollfd room{.fd = ends[1], .events = POLLOUT, .revents = 0};
  while (::poll(&room, 1, 0) == 1) ::usleep(1000);
  CHECK(written < kEntries);
  CHECK(in_child([&] {
          char block[4096];
          int lines = 0;
          while (lines < kEntries) {
            const ssize_t got = ::read(ends[0], block, sizeof block);
            if (got <= 0) return 1;
            lines += static_cast<int>(std::count(block, block + got, '\n'));
          }
          return lines == kEntries ? 0 : 2;
        }) == 0);
  thread.join();
  CHECK(written == kEntries);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a child inherits entries that follow another engine's lines", "[writer][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit);
          write_entry(0, 0);
          std::ofstream(own_map(scratch, ::getpid()), std::ios::app)
              << std::string(3000, 'x') << '\n';
          write_entry(0, 1);
          return in_child(
              [&] {
                ProcessMap::init();
                return count_entries(own_text(scratch))[0] - 2;
              },
              spawn);
        }) == 0);
}

TEST_CASE("a writer whose descriptor was closed by other code continues", "[writer][fork]") {
  const Scratch scratch;
  const std::size_t buffer = GENERATE(std::size_t{0}, std::size_t{500});
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::fresh, buffer);
          if (write_entry(0, 0) != 0) return 1;
          ::syscall(SYS_close_range, 3, ~0U, 0);
          for (int i = 1; i < 40; ++i) {
            if (write_entry(0, i) != 0) return 2;
          }
          if (ProcessMap::flush() != 0 || ProcessMap::fini() != 0) return 3;
          return count_entries(own_text(scratch))[0] - 40;
        }) == 0);
}

TEST_CASE("a descriptor that reuses the number of a lost one is not closed", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::fresh);
          write_entry(0, 0);
          ::syscall(SYS_close_range, 3, ~0U, 0);
          const int victim = ::open((scratch / "victim").c_str(), O_CREAT | O_RDWR, 0600);
          if (ProcessMap::fini() != 0) return 1;
          return ::fcntl(victim, F_GETFD) >= 0 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a child inherits although other code has closed the descriptor", "[writer][fork]") {
  const Scratch scratch;
  const bool mapped = GENERATE(false, true);
  CHECK(in_child([&] {
          ProcessMap::configure({.directory = scratch.path(),
                                 .fork = ForkPolicy::inherit,
                                 .writer = {.mapped = mapped}});
          write_entry(0, 0);
          ::syscall(SYS_close_range, 3, ~0U, 0);
          int others[4];  // these get the numbers that were closed
          for (int& other : others) {
            other = ::open((scratch / "secret").c_str(), O_CREAT | O_RDWR | O_APPEND, 0600);
          }
          if (::write(others[0], "secret\n", 7) != 7) return 1;
          const int status = in_child([&] {
            if (write_entry(1, 0) != 0 || ProcessMap::fini() != 0) return 2;
            auto found = count_entries(own_text(scratch));
            if (found[0] != 1 || found[1] != 1 || found[-1] != 0) return 3;
            for (const int other : others) {
              if (::fcntl(other, F_GETFD) < 0) return 4;
            }
            return 0;
          });
          if (status != 0) return status;
          for (const int other : others) {
            if (::fcntl(other, F_GETFD) < 0) return 5;
          }
          return read_file(scratch / "secret") == "secret\n" ? 0 : 6;
        }) == 0);
}

TEST_CASE("losing the descriptor again and again leaks no mapping", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          ProcessMap::configure({.directory = scratch.path(), .writer = {.mapped = true}});
          for (int i = 0; i < 10; ++i) {
            if (write_entry(0, i) != 0 || ProcessMap::init() != 0) return 1;
            ::syscall(SYS_close_range, 3, ~0U, 0);
            if (ProcessMap::init() != 0) return 2;
          }
          const std::string maps = read_file("/proc/self/maps");
          std::size_t count = 0;
          for (std::size_t at = 0; (at = maps.find("perf-", at)) != maps.npos; ++at) ++count;
          return count <= 1 ? 0 : 3;
        }) == 0);
}

TEST_CASE("a child that forks before it has inherited passes the entries to its own child",
          "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::inherit, 4000);
          write_entry(0, 0);
          ProcessMap::flush();
          write_entry(0, 1);  // in the buffer
          int ends[2];
          if (::pipe(ends) != 0) return 1;
          const pid_t child = bare_clone();
          if (child == 0) {
            char go = 0;
            if (::read(ends[0], &go, 1) != 1) ::_exit(2);
            const int grandchild = in_child([&] {
              if (ProcessMap::init() != 0) return 3;
              auto found = count_entries(own_text(scratch));
              return found[0] == 2 && found[-1] == 0 ? 0 : 4;
            });
            ::_exit(grandchild);
          }
          if (ProcessMap::flush() != 0 || write_entry(0, 2) != 0) return 5;
          if (::write(ends[1], "x", 1) != 1) return 6;
          const int status = wait_for(child);
          return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
        }) == 0);
}

// The address sanitizer considers the stack of a cancelled thread still in use.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a thread that writes entries can be cancelled", "[writer][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use_map_in(scratch.path(), ForkPolicy::fresh);
          pthread_t thread;
          std::atomic<int> written{0};
          ::pthread_create(
              &thread, nullptr,
              [](void* counter) -> void* {
                for (auto& count = *static_cast<std::atomic<int>*>(counter);; ++count) {
                  write_entry(0, count);
                  ::pthread_testcancel();
                }
              },
              &written);
          while (written < 10) ::usleep(1000);
          ::pthread_cancel(thread);
          void* result = nullptr;
          ::pthread_join(thread, &result);
          if (result != PTHREAD_CANCELED || write_entry(1, 0) != 0) return 1;
          auto found = count_entries(own_text(scratch));
          return found[-1] == 0 && found[0] > 0 && found[1] == 1 ? 0 : 2;
        }) == 0);
}
#endif

TEST_CASE("a child with its parent's pid in a nested namespace does not write to the parent's map",
          "[writer][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  const auto spawn = +[] {
    return static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  };
  const int status = in_child(
      [&] {
        use_map_in(scratch.path(), policy);
        if (write_entry(0, 0) != 0) return 1;
        const std::string before = own_text(scratch);
        const auto refused = [] { return write_entry(1, 0) == -1 ? errno : 0; };
        const int inner =
            in_child([&] { return refused() == EBUSY ? in_child(refused, spawn) : 0; }, spawn);
        return inner == EBUSY && own_text(scratch) == before ? 0 : 2;
      },
      spawn);
  // Without the privilege to create a namespace, clone(2) fails, and there is no child.
  if (status > 2) {
    test::skip("no pid namespace can be made here");
  } else {
    CHECK(status == 0);
  }
}

}  // namespace perfmap
