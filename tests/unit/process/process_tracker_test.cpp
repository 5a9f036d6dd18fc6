// SPDX-License-Identifier: MIT
// Recorded events: which process had a pid at a time, and what was mapped.

#include "perfmap/profile/process_tracker.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/regions.hpp"

namespace perfmap::process_tracker_test {
namespace {

using test::text_of;

constexpr Access kCode{true, false, true, false};

MmapEvent mmap_of(pid_t pid, std::uint64_t time, Address begin, std::uint64_t size,
                  std::string_view name, std::uint64_t offset = 0) {
  MmapEvent event;
  event.pid = pid;
  event.time = time;
  event.range = {begin, size};
  event.offset = offset;
  event.name = name;
  event.access = kCode;
  return event;
}

}  // namespace

TEST_CASE("at() returns the address space at the given time", "[tracker]") {
  ProcessTracker tracker;
  CHECK(tracker.at(7) == nullptr);
  tracker.on_mmap(mmap_of(7, 10, 0x1000, 0x1000, "/bin/a"));
  tracker.on_mmap(mmap_of(7, 20, 0x5000, 0x1000, "/lib/b"));
  CHECK(text_of(tracker.at(7, 9)) == "nobody");
  CHECK(text_of(tracker.at(7, 10)) == "1000-2000 r-xp 0 /bin/a");
  CHECK(text_of(tracker.at(7, 20)) == "1000-2000 r-xp 0 /bin/a; 5000-6000 r-xp 0 /lib/b");
  CHECK(text_of(tracker.at(7, 19)) == "1000-2000 r-xp 0 /bin/a");
  CHECK(tracker.at(7) == tracker.at(7, 500));
  const auto space = tracker.at(7);
  REQUIRE(space->find(0x1fff) != nullptr);
  CHECK(space->find(0x1fff)->file->name == "/bin/a");
  CHECK(space->find(0x2000) == nullptr);
  CHECK(space->find(0xfff) == nullptr);
  CHECK(space->find(0x5000)->file->name == "/lib/b");
}

TEST_CASE("mapping over part of a region keeps the rest, with its offset", "[tracker]") {
  ProcessTracker tracker;
  tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x4000, "/bin/a", 0x100));
  tracker.on_mmap(mmap_of(7, 2, 0x2000, 0x1000, "//anon", 0x2000));
  CHECK(text_of(tracker.at(7)) ==
        "1000-2000 r-xp 100 /bin/a; 2000-3000 r-xp 0; 3000-5000 r-xp 2100 /bin/a");
  SECTION("munmap") {
    tracker.on_unmap({7, 3, {0x1800, 0x2000}});
    CHECK(text_of(tracker.at(7)) == "1000-1800 r-xp 100 /bin/a; 3800-5000 r-xp 2900 /bin/a");
    CHECK(tracker.at(7, 2)->find(0x2000) != nullptr);
  }
  SECTION("dlclose and dlopen over the same range") {
    tracker.on_unmap({7, 3, {0, UINT64_MAX}});
    tracker.on_mmap(mmap_of(7, 4, 0x1000, 0x3000, "/lib/c.so", 0x1000));
    CHECK(text_of(tracker.at(7, 3)).empty());
    CHECK(text_of(tracker.at(7)) == "1000-4000 r-xp 1000 /lib/c.so");
  }
  SECTION("mremap to another address") {
    tracker.on_unmap({7, 3, {0x3000, 0x2000}});
    tracker.on_mmap(mmap_of(7, 3, 0x9000, 0x2000, "/bin/a", 0x2100));
    CHECK(text_of(tracker.at(7)) ==
          "1000-2000 r-xp 100 /bin/a; 2000-3000 r-xp 0; 9000-b000 r-xp 2100 /bin/a");
  }
}

TEST_CASE("exec starts a new generation, and its first mapping drops the old ones", "[tracker]") {
  ProcessTracker tracker;
  tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x1000, "/bin/sh"));
  tracker.on_comm({7, 7, 2, "sh", false});
  tracker.on_comm({7, 7, 10, "cc1plus", true});
  tracker.on_mmap(mmap_of(7, 11, 0x8000, 0x1000, "/usr/bin/cc1plus"));
  CHECK(text_of(tracker.at(7, 9)) == "1000-2000 r-xp 0 /bin/sh");
  CHECK(text_of(tracker.at(7, 10)) == "1000-2000 r-xp 0 /bin/sh");
  CHECK(text_of(tracker.at(7, 11)) == "8000-9000 r-xp 0 /usr/bin/cc1plus");
  CHECK(text_of(tracker.at(7)) == "8000-9000 r-xp 0 /usr/bin/cc1plus");
  CHECK(tracker.find(7, 9)->comm == "sh");
  CHECK(tracker.find(7, 9)->generation == 1);
  CHECK(tracker.find(7, 9)->until == 10);
  CHECK(tracker.find(7)->comm == "cc1plus");
  CHECK(tracker.find(7)->generation == 2);
  CHECK(tracker.find(7)->began == ProcessBegin::executed);
  CHECK(tracker.find(7)->until == ProcessTracker::kNow);
}

TEST_CASE("a forked child shares its parent's address space until one of them changes it",
          "[tracker]") {
  ProcessTracker tracker;
  tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x1000, "/bin/a"));
  tracker.on_fork({8, 8, 7, 5});
  CHECK(tracker.at(8) == tracker.at(7));
  CHECK(text_of(tracker.at(8, 4)) == "nobody");
  tracker.on_mmap(mmap_of(7, 6, 0x5000, 0x1000, "/lib/parent"));
  tracker.on_mmap(mmap_of(8, 7, 0x1800, 0x1000, "/lib/child"));
  CHECK(text_of(tracker.at(8)) == "1000-1800 r-xp 0 /bin/a; 1800-2800 r-xp 0 /lib/child");
  CHECK(text_of(tracker.at(7)) == "1000-2000 r-xp 0 /bin/a; 5000-6000 r-xp 0 /lib/parent");
  CHECK(tracker.find(8)->parent == 7);
  CHECK(tracker.find(8)->began == ProcessBegin::forked);
  CHECK(tracker.at(8)->find(0x1000)->file == tracker.at(7)->find(0x1000)->file);
}

TEST_CASE("a process ends with its last thread", "[tracker]") {
  ProcessTracker tracker;
  tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x1000, "/bin/a"));
  tracker.on_fork({7, 70, 7, 2});
  tracker.on_comm({7, 70, 2, "worker", false});
  CHECK(tracker.find(7)->comm.empty());
  tracker.on_exit({7, 7, 3});
  CHECK(tracker.at(7, 3) != nullptr);
  tracker.on_exit({7, 70, 4});
  CHECK(tracker.at(7, 3) != nullptr);
  CHECK(tracker.at(7, 4) == nullptr);
  CHECK(tracker.at(7) == nullptr);
  CHECK(tracker.find(7) == nullptr);
  tracker.on_exit({7, 7, 5});
  tracker.on_exit({9, 9, 5});
  CHECK(tracker.living().empty());
}

TEST_CASE("a reused pid is a new process, even if the exit was not seen", "[tracker]") {
  ProcessTracker tracker;
  const bool end_was_seen = GENERATE(true, false);
  tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x1000, "/bin/old"));
  if (end_was_seen) tracker.on_exit({7, 7, 10});
  tracker.on_fork({7, 7, 2, 20});
  CHECK(tracker.find(7)->generation == 2);
  CHECK(text_of(tracker.at(7)).empty());
  CHECK(text_of(tracker.at(7, 5)) == "1000-2000 r-xp 0 /bin/old");
  CHECK(text_of(tracker.at(7, 15)) == (end_was_seen ? "nobody" : "1000-2000 r-xp 0 /bin/old"));
  tracker.on_mmap(mmap_of(7, 21, 0x3000, 0x1000, "/bin/new"));
  CHECK(text_of(tracker.at(7)) == "3000-4000 r-xp 0 /bin/new");
}

TEST_CASE("an event with an earlier time counts from the time of the last event", "[tracker]") {
  ProcessTracker tracker;
  tracker.on_mmap(mmap_of(7, 50, 0x1000, 0x1000, "/bin/a"));
  tracker.on_mmap(mmap_of(7, 20, 0x1000, 0x1000, "/bin/b"));
  CHECK(tracker.at(7, 49) == nullptr);
  CHECK(text_of(tracker.at(7, 50)) == "1000-2000 r-xp 0 /bin/b");
  tracker.on_exit({7, 7, 1});
  CHECK(tracker.at(7) == nullptr);
  tracker.on_exit({8, 8, UINT64_MAX});
  tracker.on_mmap(mmap_of(8, UINT64_MAX, UINT64_MAX - 5, 100, "/bin/a"));
  tracker.on_exit({8, 8, UINT64_MAX});
  CHECK(tracker.find(8, UINT64_MAX - 1) == nullptr);
}

TEST_CASE("find_pid() calls the callback for an unknown pid, once", "[tracker]") {
  ProcessTracker tracker;
  int calls = 0;
  const ProcessTracker::Create create = [&calls](ProcessTracker& which, pid_t pid) {
    ++calls;
    which.on_mmap(mmap_of(pid, 1, 0x1000, 0x1000, "/bin/a"));
    return Result<void>();
  };
  CHECK(*tracker.find_pid(7) == nullptr);
  REQUIRE(tracker.find_pid(7, create));
  CHECK((*tracker.find_pid(7, create))->pid == 7);
  CHECK(calls == 1);
  const auto nothing = [](ProcessTracker&, pid_t) { return Result<void>(); };
  CHECK(*tracker.find_pid(8, nothing) == nullptr);
  const auto failure = [](ProcessTracker&, pid_t) -> Result<void> {
    return Failure(Error::io("no"));
  };
  REQUIRE(!tracker.find_pid(8, failure));
  CHECK(tracker.find_pid(8, failure).error().message() == "no");
}

TEST_CASE("forget_before() drops the history before a time", "[tracker]") {
  ProcessTracker tracker;
  for (std::uint64_t time = 1; time <= 1000; ++time) {
    tracker.on_mmap(mmap_of(7, time, time % 10 * 0x1000, 0x1000, "/bin/a", time));
  }
  tracker.on_mmap(mmap_of(9, 1, 0x1000, 0x1000, "/bin/b"));
  tracker.on_exit({9, 9, 2});
  const auto before = tracker.at(7, 500);
  const auto later = tracker.at(7, 900);
  tracker.forget_before(500);
  CHECK(*tracker.at(7, 500) == *before);
  CHECK(tracker.at(7, 1) == tracker.at(7, 500));
  CHECK(*tracker.at(7, 900) == *later);
  CHECK(tracker.at(7)->find(0)->offset == 1000);
  tracker.on_fork({9, 9, 1, 600});
  CHECK(tracker.find(9)->generation == 2);
  tracker.forget_before(2000);
  CHECK(tracker.at(7)->find(0)->offset == 1000);
}

TEST_CASE("an address space outlives its tracker", "[tracker]") {
  std::shared_ptr<const AddressSpace> space;
  {
    ProcessTracker tracker;
    tracker.on_mmap(mmap_of(7, 1, 0x1000, 0x1000, "/bin/a"));
    space = tracker.at(7);
  }
  CHECK(space->find(0x1000)->file->name == "/bin/a");
}

}  // namespace perfmap::process_tracker_test
