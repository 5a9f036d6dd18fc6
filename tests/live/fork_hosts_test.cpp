// Forks in processes that do other things, too: with handlers and engines of their own, with
// writers that wait, with descriptors that somebody closes.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "perfmap/writer.hpp"
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
using test::wait_for;
using test::write_entry;

int use(const Scratch& scratch, ForkPolicy policy = ForkPolicy::fresh, std::size_t buffer = 0) {
  return ProcessMap::configure(
      {.directory = scratch.path(), .fork = policy, .writer = {.buffer_bytes = buffer}});
}

std::string own_text(const Scratch& scratch) { return read_file(own_map(scratch, ::getpid())); }

}  // namespace

TEST_CASE("a host's own handlers of fork may use the map", "[live][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use(scratch);
          write_entry(0, 0);
          ::pthread_atfork([] { ProcessMap::fini(); }, [] { write_entry(0, 1); },
                           [] { write_entry(1, 0); });
          const int status = in_child([&] { return count_entries(own_text(scratch))[1] - 1; });
          auto found = count_entries(own_text(scratch));
          return status == 0 && found[0] == 2 && found[1] == 0 && found[-1] == 0 ? 0 : 1;
        }) == 0);
}

TEST_CASE("a fork does not wait for a writer that waits for its reader", "[live][fork]") {
  constexpr int kEntries = 5000;  // more than a pipe holds
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto writer = MapWriter::to_descriptor(ends[1], "pipe");
  REQUIRE(writer);
  std::atomic<int> written{0};
  std::thread thread([&] {
    while (written < kEntries && writer->write(0x1000, 0x10, "waits")) ++written;
  });
  for (int before = -1; before != written; ::usleep(100'000)) before = written;
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

TEST_CASE("an heir gets entries that stand behind another engine's", "[live][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  CHECK(in_child([&] {
          use(scratch, ForkPolicy::inherit);
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

TEST_CASE("writers go on where somebody has closed their descriptors", "[live][fork]") {
  const Scratch scratch;
  const std::size_t buffer = GENERATE(std::size_t{0}, std::size_t{500});
  CHECK(in_child([&] {
          use(scratch, ForkPolicy::fresh, buffer);
          if (write_entry(0, 0) != 0) return 1;
          ::syscall(SYS_close_range, 3, ~0U, 0);
          for (int i = 1; i < 40; ++i) {
            if (write_entry(0, i) != 0) return 2;
          }
          if (ProcessMap::flush() != 0 || ProcessMap::fini() != 0) return 3;
          return count_entries(own_text(scratch))[0] - 40;
        }) == 0);
}

TEST_CASE("what has come to the number of a lost descriptor is left open", "[live][fork]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          use(scratch);
          write_entry(0, 0);
          ::syscall(SYS_close_range, 3, ~0U, 0);
          const int victim = ::open((scratch / "victim").c_str(), O_CREAT | O_RDWR, 0600);
          if (ProcessMap::fini() != -1 || errno != EBADF) return 1;
          return ::fcntl(victim, F_GETFD) >= 0 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a thread that writes can be cancelled", "[live][fork]") {
#ifdef __SANITIZE_ADDRESS__
  WARN("skipped: to the address sanitizer the stack of a cancelled thread is still in use");
  return;
#endif
  const Scratch scratch;
  CHECK(in_child([&] {
          use(scratch);
          pthread_t thread;
          ::pthread_create(
              &thread, nullptr,
              [](void*) -> void* {
                for (int i = 0;; ++i) {
                  write_entry(0, i);
                  ::pthread_testcancel();
                }
              },
              nullptr);
          ::usleep(20'000);
          ::pthread_cancel(thread);
          void* result = nullptr;
          ::pthread_join(thread, &result);
          if (result != PTHREAD_CANCELED || write_entry(1, 0) != 0) return 1;
          auto found = count_entries(own_text(scratch));
          return found[-1] == 0 && found[0] > 0 && found[1] == 1 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a child whose namespace gives it its parent's number leaves the parent's map alone",
          "[live][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  const auto spawn = +[] {
    return static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  };
  const int status = in_child(
      [&] {
        use(scratch, policy);
        if (write_entry(0, 0) != 0) return 1;
        const std::string before = own_text(scratch);
        const int inner = in_child([] { return write_entry(1, 0) == -1 ? errno : 0; }, spawn);
        return inner == EBUSY && own_text(scratch) == before ? 0 : 2;
      },
      spawn);
  // Without the right to make one, the child is none.
  if (status > 2) {
    WARN("skipped: no pid namespace can be made here");
  } else {
    CHECK(status == 0);
  }
}

}  // namespace perfmap
