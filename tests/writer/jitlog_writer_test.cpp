// SPDX-License-Identifier: MIT
// Contents of loop logs, written by one thread and by several.

#include <atomic>
#include <cerrno>
#include <ctime>
#include <set>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/jitlog_reading.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::JitlogSection;
using test::read_file;
using test::read_jitlog;
using test::ReadJitlog;
using test::Scratch;

using Names = std::vector<std::string>;

std::uint64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void wait_ns(std::uint64_t duration) {
  const std::uint64_t end = monotonic_now() + duration;
  while (monotonic_now() < end) {
  }
}

}  // namespace

TEST_CASE("reading a log returns the profile that was recorded", "[writer][jitlog]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log", {.clock = JitlogClock::monotonic});
  REQUIRE(log);
  const JitlogLoop bridge = *log->loop("entry bridge");
  const JitlogLoop loop = *log->loop("loop0");
  const std::uint64_t begin = monotonic_now();
  CHECK(log->enter(bridge) == 0);
  wait_ns(1'000'000);
  CHECK(log->enter(loop) == 0);
  wait_ns(3'000'000);
  CHECK(log->exit(loop) == 0);
  const std::uint64_t end = monotonic_now();
  wait_ns(1'000'000);
  CHECK(log->enter(loop) == 0);
  CHECK(log->exit(loop) == 0);
  REQUIRE(log->close());
  const ReadJitlog found = read_jitlog(scratch / "log");
  CHECK(found.rest == 0);
  CHECK(found.events() == Names{"+entry bridge", "+loop0", "-loop0", "+loop0", "-loop0"});
  const auto profile = found.profile();
  CHECK(profile.at("entry bridge") >= 1'000'000);
  CHECK(profile.at("loop0") >= 3'000'000);

  const LoopProfile read = test::profile_in(scratch / "log");
  CHECK(read.base() == TickBase::hex);
  CHECK(read.problems().total() == 0);
  REQUIRE(read.threads().size() == 1);
  for (const auto& [name, entries] : {std::pair{"entry bridge", 1U}, {"loop0", 2U}}) {
    const std::uint32_t number = read.loops().find(name);
    REQUIRE(number != CompiledLoop::kNone);
    CHECK(read.times()[number].ticks == profile.at(name));
    CHECK(read.times()[number].entered == entries);
  }
  CHECK(found.sections[1].tick >= begin);
  CHECK(found.sections[3].tick <= end);
}

TEST_CASE("a log begins with its clock, at a tick with a hexadecimal digit above 9",
          "[writer][jitlog]") {
  const Scratch scratch;
  const auto clock = GENERATE(JitlogClock::counter, JitlogClock::monotonic);
  for (int i = 0; i < 50; ++i) {
    auto log = JitlogWriter::open(scratch / "log", {.clock = clock});
    if (!log) {
      CHECK(log.error().code == Errc::unsupported);
      return;
    }
    CHECK(log->enter(*log->loop("loop")) == 0);
    REQUIRE(log->close());
    const std::string text = read_file(scratch / "log");
    const ReadJitlog found = read_jitlog(scratch / "log");
    REQUIRE(found.sections.size() == 2);
    const JitlogSection& first = found.sections[0];
    CHECK(first.category == "jit-profile-clock");
    if (clock == JitlogClock::monotonic) CHECK(first.name == "CLOCK_MONOTONIC ns");
    CHECK(first.tick <= found.sections[1].tick);
    const std::size_t tick = text.find('[');
    CHECK(text.substr(tick, text.find(']') - tick).find_first_of("abcdef") != std::string::npos);
  }
}

TEST_CASE("threads: no event is lost, and each thread's events are in order under its number",
          "[writer][jitlog][tsan]") {
  const Scratch scratch;
  constexpr int kThreads = 6;
  constexpr int kEach = 5'000;
  auto log = JitlogWriter::open(scratch / "log", {.buffer_events = 64});
  REQUIRE(log);
  std::vector<std::thread> threads;
  std::atomic<bool> good{true};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "t" + std::to_string(t) + " loop " + std::to_string(i % 100);
        const auto loop = log->loop(name);
        if (!loop || log->enter(*loop) != 0) good = false;
        if (i % 500 == 0 && !log->flush()) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good);
  CHECK(log->lost() == 0);
  REQUIRE(log->close());
  const ReadJitlog found = read_jitlog(scratch / "log");
  CHECK(found.rest == 0);
  CHECK(found.of("jit-profile-clock").size() == 1);
  CHECK(found.of("jit-profile-enter").size() == kThreads * kEach);
  std::set<std::string> seen;
  for (int number = 1; number <= kThreads; ++number) {
    const Names names = found.events(number);
    REQUIRE(names.size() == kEach);
    const std::string whose = names.front().substr(0, 3);
    CHECK(seen.insert(whose).second);
    for (int i = 0; i < kEach; ++i) {
      REQUIRE(names[static_cast<std::size_t>(i)] == whose + " loop " + std::to_string(i % 100));
    }
  }
  std::vector<std::uint64_t> last(kThreads + 1);
  for (const JitlogSection& section : found.sections) {
    std::uint64_t& before = last.at(static_cast<std::size_t>(section.thread));
    REQUIRE(section.tick >= before);
    before = section.tick;
  }
}

TEST_CASE("another thread may flush while a thread records", "[writer][jitlog][tsan]") {
  const Scratch scratch;
  constexpr int kEvents = 20'000;
  auto log = JitlogWriter::open(scratch / "log", {.buffer_events = 1000});
  const JitlogLoop loop = *log->loop("loop");
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      if (!log->flush()) break;
    }
  });
  for (int i = 0; i < kEvents; ++i) REQUIRE(log->enter(loop) == 0);
  done = true;
  other.join();
  REQUIRE(log->close());
  CHECK(read_jitlog(scratch / "log").events() == Names(kEvents, "+loop"));
}

TEST_CASE("a thread's events are written when the thread ends", "[writer][jitlog][tsan]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log");
  const JitlogLoop loop = *log->loop("loop");
  for (int i = 1; i <= 3; ++i) {
    std::thread([&] { log->enter(loop); }).join();
    CHECK(read_jitlog(scratch / "log").events(i) == Names{"+loop"});
  }
  CHECK(log->enter(loop) == 0);
  CHECK(read_jitlog(scratch / "log").events().size() == 3);
}

TEST_CASE("a thread may outlive a log in which it has recorded, and use another log",
          "[writer][jitlog][tsan]") {
  const Scratch scratch;
  std::atomic<int> step{0};
  auto first = JitlogWriter::open(scratch / "first");
  auto second = JitlogWriter::open(scratch / "second");
  const JitlogLoop loop = *first->loop("one");
  const JitlogLoop other = *second->loop("two");
  std::thread thread([&] {
    for (int i = 0; i < 3; ++i) {
      first->enter(loop);
      second->enter(other);
    }
    step = 1;
    while (step != 2) std::this_thread::yield();
    second->exit(other);
  });
  while (step != 1) std::this_thread::yield();
  REQUIRE(first->close());
  CHECK(first->enter(loop) == EBADF);
  first = JitlogWriter::open(scratch / "third");
  step = 2;
  thread.join();
  CHECK(read_jitlog(scratch / "first").events() == Names(3, "+one"));
  CHECK(read_jitlog(scratch / "second").events() == Names{"+two", "+two", "+two", "-two"});
}

TEST_CASE("with a buffer of one event, an event is in the file when its call returns",
          "[writer][jitlog]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log", {.buffer_events = 1});
  const JitlogLoop loop = *log->loop("loop");
  for (std::size_t i = 1; i <= 5; ++i) {
    REQUIRE(log->enter(loop) == 0);
    CHECK(read_jitlog(scratch / "log").events().size() == i);
  }
}

TEST_CASE("without thread numbers only one thread may record", "[writer][jitlog]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log", {.one_thread = true});
  const JitlogLoop loop = *log->loop("loop");
  CHECK(log->enter(loop) == 0);
  std::thread([&] { CHECK(log->enter(loop) == EPERM); }).join();
  CHECK(log->exit(loop) == 0);
  REQUIRE(log->close());
  const ReadJitlog found = read_jitlog(scratch / "log");
  CHECK(found.rest == 0);
  CHECK(found.events(0) == Names{"+loop", "-loop"});
  CHECK(read_file(scratch / "log").find('#') == std::string::npos);
}

TEST_CASE("a loop name gets one number; unknown numbers are refused", "[writer][jitlog]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log", {.names = NamePolicy::refuse});
  CHECK(log->enter(1) == EINVAL);
  CHECK(*log->loop("one") == 1);
  CHECK(*log->loop("two") == 2);
  CHECK(*log->loop("one") == 1);
  CHECK(log->enter(0) == EINVAL);
  CHECK(log->exit(3) == EINVAL);
  CHECK(log->enter(UINT32_MAX) == EINVAL);
  const auto refused = log->loop("two\n[1] {gc-minor");
  REQUIRE(!refused);
  CHECK(refused.error().sys_errno == EILSEQ);
  REQUIRE(log->close());
  CHECK(log->enter(1) == EBADF);
  CHECK(read_file(scratch / "log").empty());
}

TEST_CASE("a name cannot forge a section", "[writer][jitlog]") {
  const Scratch scratch;
  auto log = JitlogWriter::open(scratch / "log");
  const std::string name = "x\n1# [1] jit-profile-enter}\n1# [2] {jit-profile-exit\ny";
  CHECK(log->enter(*log->loop(name)) == 0);
  REQUIRE(log->close());
  const ReadJitlog found = read_jitlog(scratch / "log");
  CHECK(found.rest == 0);
  CHECK(found.sections.size() == 2);
}

TEST_CASE("opening replaces an existing log, and refuses files that are not logs",
          "[writer][jitlog]") {
  const Scratch scratch;
  for (int i = 0; i < 2; ++i) {
    auto log = JitlogWriter::open(scratch / "log");
    REQUIRE(log);
    CHECK(JitlogWriter::open(scratch / "log").error().sys_errno == EBUSY);
    CHECK(log->enter(*log->loop("loop")) == 0);
    REQUIRE(log->close());
    CHECK(read_jitlog(scratch / "log").events().size() == 1);
  }
  struct stat status {};
  REQUIRE(::stat((scratch / "log").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::string letter = scratch.write("letter", "Dear reader,\n");
  CHECK(JitlogWriter::open(letter).error().code == Errc::bad_format);
  CHECK(read_file(letter) == "Dear reader,\n");
  CHECK(JitlogWriter::open(scratch / "no/such").error().code == Errc::not_found);
  CHECK(JitlogWriter::open(scratch.path()).error().sys_errno == EISDIR);
}

TEST_CASE("own log: links, files with several names, FIFOs and other users' files are refused",
          "[writer][jitlog]") {
  const Scratch scratch;
  const JitlogOptions own{.own_log = true};
  const std::string log = scratch.write("log", "[1] {jit\n[1] jit}\n");
  REQUIRE(::symlink(log.c_str(), (scratch / "link").c_str()) == 0);
  CHECK(JitlogWriter::open(scratch / "link", own).error().sys_errno == ELOOP);
  CHECK(JitlogWriter::open(scratch / "link"));
  REQUIRE(::link(log.c_str(), (scratch / "other").c_str()) == 0);
  CHECK(JitlogWriter::open(log, own).error().sys_errno == EMLINK);
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(JitlogWriter::open(scratch / "pipe", own).error().sys_errno == EINVAL);
  if (::geteuid() == 0) {
    const std::string theirs = scratch.write("theirs", "");
    REQUIRE(::chown(theirs.c_str(), 1, 1) == 0);
    CHECK(JitlogWriter::open(theirs, own).error().sys_errno == EPERM);
  }
}

}  // namespace perfmap
