// SPDX-License-Identifier: MIT
// A loop log in a process's children, for each fork policy.

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/jitlog_reading.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::bare_clone;
using test::in_child;
using test::read_jitlog;
using test::ReadJitlog;
using test::Scratch;
using test::wait_for;

using Names = std::vector<std::string>;

#ifdef __SANITIZE_ADDRESS__
constexpr int kForks = 15;  // while threads record
#else
constexpr int kForks = 60;
#endif

std::string log_of(const Scratch& scratch, pid_t pid) {
  return scratch / ("jit-" + std::to_string(pid) + ".log");
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

JitlogWriter open_log(const Scratch& scratch, ForkPolicy policy, std::uint32_t buffer = 0) {
  auto log = JitlogWriter::open(scratch / "jit-%d.log", {.buffer_events = buffer, .fork = policy});
  REQUIRE(log);
  return *std::move(log);
}

}  // namespace

TEST_CASE("fresh: a child's log has only its own events, and the parent's has none of them",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  JitlogWriter log = open_log(scratch, ForkPolicy::fresh);
  const JitlogLoop loop = *log.loop("parent's");
  CHECK(log.enter(loop) == 0);
  REQUIRE(log.flush());
  CHECK(log.exit(loop) == 0);  // in the buffer at the fork
  const pid_t child = spawn();
  if (child == 0) {
    const std::string mine = log_of(scratch, ::getpid());
    if (!log.flush() || exists(mine)) ::_exit(1);
    if (log.enter(loop) != 0 || log.exit(*log.loop("child's")) != 0) ::_exit(2);
    if (log.path() != mine) ::_exit(3);
    ::_exit(log.close() ? 0 : 4);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_jitlog(log.path()).events() == Names{"+parent's"});
  REQUIRE(log.close());
  CHECK(read_jitlog(log_of(scratch, ::getpid())).events() == Names{"+parent's", "-parent's"});
  const ReadJitlog found = read_jitlog(log_of(scratch, child));
  CHECK(found.events(1) == Names{"+parent's", "-child's"});
  CHECK(found.of("jit-profile-clock").size() == 1);
  CHECK(found.rest == 0);
}

TEST_CASE("inherit: a child's log begins with the parent's events, whether flushed or not",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  const bool written = GENERATE(true, false);
  JitlogWriter log = open_log(scratch, ForkPolicy::inherit);
  const JitlogLoop loop = *log.loop("loop");
  CHECK(log.enter(loop) == 0);
  if (written) REQUIRE(log.flush());
  CHECK(log.exit(loop) == 0);
  CHECK(log.enter(loop) == 0);
  const pid_t child = spawn();
  if (child == 0) {
    const std::string mine = log_of(scratch, ::getpid());
    if (exists(mine)) ::_exit(1);
    if (log.exit(loop) != 0 || log.path() != mine) ::_exit(2);
    ::_exit(log.close() ? 0 : 3);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_jitlog(log.path()).events() == (written ? Names{"+loop"} : Names{}));
  const ReadJitlog found = read_jitlog(log_of(scratch, child));
  CHECK(found.events(1) == Names{"+loop", "-loop", "+loop", "-loop"});
  CHECK(found.of("jit-profile-clock").size() == 1);
  CHECK(found.sections[0].category == "jit-profile-clock");
  REQUIRE(log.close());
  CHECK(read_jitlog(log_of(scratch, ::getpid())).events() == Names{"+loop", "-loop", "+loop"});
}

TEST_CASE("off, or a path without %d: a child's calls succeed and write nothing",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  const bool off = GENERATE(true, false);
  const auto policy = off ? ForkPolicy::off : GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  auto log = JitlogWriter::open(scratch / (off ? "jit-%d.log" : "jit.log"), {.fork = policy});
  REQUIRE(log);
  const JitlogLoop loop = *log->loop("loop");
  CHECK(log->enter(loop) == 0);
  const auto child = [&] {
    for (int i = 0; i < 10'000; ++i) {
      if (log->enter(loop) != 0) return 1;
    }
    if (!log->flush() || exists(log_of(scratch, ::getpid()))) return 2;
    // The same in a grandchild.
    const int grandchild = in_child([&] { return log->enter(loop) == 0 && log->flush() ? 0 : 1; });
    if (grandchild != 0) return 3;
    if (!log->close()) return 4;
    return log->enter(loop) == EBADF ? 0 : 5;
  };
  CHECK(in_child(child) == 0);
  CHECK(in_child(child, bare_clone) == 0);
  REQUIRE(log->close());
  CHECK(read_jitlog(log->path()).events() == Names{"+loop"});
}

TEST_CASE("a child that cannot create a log reports why, and its parent continues",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  JitlogWriter log = open_log(scratch, policy);
  const JitlogLoop loop = *log.loop("loop");
  CHECK(log.enter(loop) == 0);
  CHECK(in_child([&] {
          scratch.write("jit-" + std::to_string(::getpid()) + ".log", "a letter\n");
          const int why = in_child([&] {  // forked before its parent's log could be created
            scratch.write("jit-" + std::to_string(::getpid()) + ".log", "x");
            return log.enter(loop);
          });
          return why == EINVAL && log.enter(loop) == EINVAL ? 0 : 1;
        }) == 0);
  CHECK(log.exit(loop) == 0);
  REQUIRE(log.close());
  CHECK(read_jitlog(log.path()).events() == Names{"+loop", "-loop"});
}

TEST_CASE("logs of children are whole even if threads of the parent record at the fork",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit, ForkPolicy::off);
  constexpr int kThreads = 4;
  JitlogWriter log = open_log(scratch, policy, 50);
  const JitlogLoop loop = *log.loop("loop");
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> allowed{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; !done; ++i) {
        if (recorded >= allowed) {
          std::this_thread::yield();
        } else if (log.enter(*log.loop("loop " + std::to_string(i % 999))) == 0) {
          ++recorded;
        }
      }
    });
  }
  for (int i = 0; i < kForks; ++i) {
    allowed += 300;
    const std::uint64_t before = recorded;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(log.enter(loop) == 0 && log.loop("child's") && log.close() ? 0 : 1);
    }
    REQUIRE(wait_for(child) == 0);
    const std::string path = log_of(scratch, child);
    REQUIRE(exists(path) == (policy != ForkPolicy::off));
    if (policy == ForkPolicy::off) continue;
    const ReadJitlog found = read_jitlog(path);
    const Names names = found.events();
    REQUIRE(found.rest == 0);
    REQUIRE(names.back() == "+loop");
    REQUIRE((policy == ForkPolicy::inherit ? names.size() > before : names.size() == 1));
    ::unlink(path.c_str());
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(log.close());
  const ReadJitlog parents = read_jitlog(log.path());
  CHECK(parents.rest == 0);
  CHECK(parents.events().size() == recorded);
}

TEST_CASE("after a bare clone, a child does not wait for locks that the parent's threads hold",
          "[writer][jitlog][fork]") {
  const Scratch scratch;
  JitlogWriter log = open_log(scratch, ForkPolicy::off, 1);
  const JitlogLoop loop = *log.loop("loop");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    while (!done) log.enter(loop);
  });
  std::thread flusher([&] {
    while (!done) static_cast<void>(log.flush());
  });
  for (int i = 0; i < kForks; ++i) {
    REQUIRE(in_child([&] { return log.enter(loop) == 0 && log.flush() ? 0 : 1; }, bare_clone) == 0);
  }
  done = true;
  writer.join();
  flusher.join();
  REQUIRE(log.close());
  CHECK(read_jitlog(log.path()).rest == 0);
}

}  // namespace perfmap
