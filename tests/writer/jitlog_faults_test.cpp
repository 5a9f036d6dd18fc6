// SPDX-License-Identifier: MIT
// Loop logs of processes that are killed, out of room, or interrupted by signals.

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/jitlog_reading.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::in_child;
using test::read_jitlog;
using test::ReadJitlog;
using test::Scratch;
using test::wait_for;

using Names = std::vector<std::string>;

constexpr int kThreads = 3;
#ifdef __SANITIZE_ADDRESS__
constexpr int kKills = 2;  // for each size of the buffer
#else
constexpr int kKills = 5;
#endif
using Counts = std::array<std::atomic<std::uint64_t>, kThreads>;

Names names_of(int thread, std::size_t count) {
  Names names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("+t" + std::to_string(thread) + " loop " + std::to_string(i % 7));
  }
  return names;
}

/// Records until it is killed; `counts` has the number of events of each thread.
[[noreturn]] void record_for_ever(const std::string& path, std::uint32_t buffer, Counts& counts) {
  auto log = JitlogWriter::open(path, {.buffer_events = buffer});
  if (!log) ::_exit(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::array<JitlogLoop, 7> loops;
      for (std::size_t i = 0; i < loops.size(); ++i) {
        loops[i] = *log->loop("t" + std::to_string(t) + " loop " + std::to_string(i));
      }
      for (std::size_t i = 0; log->enter(loops[i % loops.size()]) == 0; ++i) {
        counts[static_cast<std::size_t>(t)] = i + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ::_exit(2);
}

}  // namespace

TEST_CASE("SIGKILL loses at most the last events that each thread has buffered",
          "[writer][jitlog]") {
  const auto buffer = GENERATE(1U, 100U, 4096U);
  auto* const counts = static_cast<Counts*>(
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int round = 0; round < kKills; ++round) {
    const Scratch scratch;
    for (auto& count : *counts) count = 0;
    const pid_t child = ::fork();
    if (child == 0) record_for_ever(scratch / "log", buffer, *counts);
    for (auto& count : *counts) {
      while (count < 6'000) ::usleep(100);
    }
    ::kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
    const ReadJitlog found = read_jitlog(scratch / "log");
    CHECK(found.rest < 200);  // at most one incomplete section
    for (int number = 1; number <= kThreads; ++number) {
      const Names names = found.events(number);
      REQUIRE(!names.empty());
      const int thread = names.front()[2] - '0';
      // The thread may not have counted an event that it has just recorded.
      const std::uint64_t counted = (*counts)[static_cast<std::size_t>(thread)];
      CHECK(names.size() + buffer >= counted);
      REQUIRE(names == names_of(thread, names.size()));
    }
  }
  ::munmap(counts, sizeof(Counts));
}

TEST_CASE("at the file size limit whole sections fail without a signal and are counted",
          "[writer][jitlog]") {
  const Scratch scratch;
  const int status = in_child([&] {
    auto log = JitlogWriter::open(scratch / "log", {.buffer_events = 10});
    const JitlogLoop loop = *log->loop("loop");
    const rlimit low{3000, RLIM_INFINITY};
    const rlimit high{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &low);  // SIGXFSZ would end this process
    int failed = 0;
    for (int i = 0; i < 100; ++i) {
      const int error = log->enter(loop);
      if (error != 0 && error != EFBIG) return 1;
      failed += error != 0 ? 1 : 0;
    }
    if (failed == 0 || log->lost() != static_cast<std::uint64_t>(failed) * 10) return 2;
    const std::uint64_t lost = log->lost();
    ::setrlimit(RLIMIT_FSIZE, &high);
    for (int i = 0; i < 10; ++i) {
      if (log->exit(loop) != 0) return 3;  // now there is room again
    }
    const auto closed = log->close();
    if (closed || closed.error().sys_errno != EFBIG || log->lost() != lost) return 4;
    return static_cast<int>(100 + (100 - lost));
  });
  const ReadJitlog found = read_jitlog(scratch / "log");
  CHECK(found.rest == 0);
  REQUIRE(status >= 110);
  Names expected(static_cast<std::size_t>(status - 100), "+loop");
  expected.insert(expected.end(), 10, "-loop");
  CHECK(found.events() == expected);
}

TEST_CASE("ENOSPC is reported by the call that writes, by flush and by close", "[writer][jitlog]") {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  auto log = JitlogWriter::to_descriptor(full, "full", {.buffer_events = 2});
  ::close(full);
  REQUIRE(log);
  const JitlogLoop loop = *log->loop("loop");
  CHECK(log->enter(loop) == 0);
  CHECK(log->exit(loop) == ENOSPC);
  CHECK(log->lost() == 2);
  CHECK(log->enter(loop) == 0);
  const auto flushed = log->flush();
  REQUIRE(!flushed);
  CHECK(flushed.error().sys_errno == ENOSPC);
  CHECK(flushed.error().message().find("full") != std::string::npos);
  CHECK(log->lost() == 3);
  CHECK(log->close().error().sys_errno == ENOSPC);
}

TEST_CASE("signals during writes of a log to a pipe lose no event", "[writer][jitlog]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  constexpr int kEvents = 20'000;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    auto log = JitlogWriter::to_descriptor(ends[1], "pipe");
    const JitlogLoop loop = *log->loop("loop");
    for (int i = 0; i < kEvents; ++i) {
      if (log->enter(loop) != 0) ::_exit(1);
    }
    ::_exit(log->close() ? 0 : 2);
  }
  ::close(ends[1]);
  std::string read;
  char block[512];
  for (ssize_t got = 0; (got = ::read(ends[0], block, sizeof block)) > 0;) {
    read.append(block, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  CHECK(wait_for(child) == 0);
  const ReadJitlog found = test::parse_jitlog(read);
  CHECK(found.rest == 0);
  CHECK(found.events() == Names(kEvents, "+loop"));
}

TEST_CASE("exit(3) writes the events of its thread", "[writer][jitlog]") {
  const Scratch scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    // Never closed; still reachable, so not a leak.
    static JitlogWriter* log = nullptr;
    log = new JitlogWriter(*JitlogWriter::open(scratch / "log"));
    log->enter(*log->loop("loop"));
    ::exit(0);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_jitlog(scratch / "log").events() == Names{"+loop"});
}

}  // namespace perfmap
