// SPDX-License-Identifier: MIT
// Memory use of a tracker with many processes, which share their data where possible.

#include <algorithm>
#include <malloc.h>
#include <string>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

constexpr int kLibraries = 20;
constexpr int kRegions = 5;  // per library, as the dynamic linker maps them

/// Bytes that this process has allocated; 0 if the allocator does not report them.
std::size_t held() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

/// Maps the libraries of a process as the dynamic linker does, at addresses that depend on its pid.
void load(ProcessTracker& tracker, pid_t pid, std::uint64_t time) {
  for (int library = 0; library < kLibraries; ++library) {
    const std::string name =
        "/usr/lib/x86_64-linux-gnu/libsomething-" + std::to_string(library) + ".so.1.2.3";
    for (int part = 0; part < kRegions; ++part) {
      MmapEvent event;
      event.pid = pid;
      event.time = ++time;
      const int place = library * kRegions + part;
      event.range = {0x7f0000000000 + static_cast<Address>(pid) * 0x10000000 +
                         static_cast<Address>(place) * 0x10000,
                     0x10000};
      event.offset = static_cast<std::uint64_t>(part) * 0x10000;
      event.name = name;
      event.inode = static_cast<std::uint64_t>(library + 1);
      event.access = {true, false, part == 1, false};
      tracker.on_mmap(event);
    }
  }
}

}  // namespace

TEST_CASE("a thousand processes with twenty libraries take at most 100 kB each", "[memory]") {
  if (held() == 0) {
    test::skip("the allocator does not tell");
    return;
  }
  constexpr int kProcesses = 1000;
  const std::size_t before = held();
  int opened = 0;
  ProcessTracker tracker(
      {.roots = {}, .any_owner = false, .open_module = [&opened](const Region&, const ProcSource*) {
         ++opened;
         return Result<std::shared_ptr<const Module>>(nullptr);
       }});
  load(tracker, 1, 0);
  const std::size_t one = held() - before;
  for (pid_t pid = 2; pid <= kProcesses; ++pid) load(tracker, pid, 0);
  // Each process at three times, as for samples.
  for (pid_t pid = 1; pid <= kProcesses; ++pid) {
    for (const std::uint64_t time : {30u, 60u, 100u}) REQUIRE(tracker.at(pid, time) != nullptr);
    for (const Region& region : tracker.at(pid)->regions()) {
      REQUIRE(tracker.module_of(pid, region));
    }
  }
  const std::size_t each = (held() - before - one) / (kProcesses - 1);
  CAPTURE(one, each);
  CHECK(each <= 100'000);
  CHECK(opened == kLibraries);

  const std::size_t loaded = held();
  for (pid_t pid = 2; pid <= kProcesses; ++pid)
    tracker.on_fork({10'000 + pid, 10'000 + pid, 1, 500});
  const std::size_t forked = (held() - loaded) / (kProcesses - 1);
  CHECK(forked <= 2'000);
  CHECK(tracker.at(10'002) == tracker.at(1));
  tracker.forget_before(1000);
  CHECK(held() < loaded);
}

TEST_CASE("short processes that are forgotten take no memory", "[memory]") {
  if (held() == 0) {
    test::skip("the allocator does not tell");
    return;
  }
  constexpr pid_t kFirst = 1000, kProcesses = 200'000;
  ProcessTracker tracker;
  load(tracker, 1, 0);
  const std::size_t before = held();
  std::size_t most = 0;
  for (pid_t i = 0; i < kProcesses; ++i) {
    const auto time = static_cast<std::uint64_t>(1000 + 2 * i);
    tracker.on_fork({kFirst + i, kFirst + i, 1, time});
    tracker.on_exit({kFirst + i, kFirst + i, time + 1});
    if (i % 1000 == 999) tracker.forget_before(time);
    most = std::max(most, held());
  }
  CAPTURE(before, most);
  CHECK(most - before < std::size_t{2} << 20);
  CHECK(tracker.living().size() == 1);
  tracker.forget_before(ProcessTracker::kNow - 1);
  tracker.on_fork({kFirst, kFirst, 1, 10'000'000});
  CHECK(tracker.find(kFirst)->generation > 1);
}

TEST_CASE("a million events in the worst order take time and memory in proportion", "[memory]") {
  ProcessTracker tracker;
  // Each range is before the previous one: a sorted array would move all elements each time.
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
    MmapEvent event;
    event.pid = 1;
    event.time = i;
    event.range = {(1'000'000 - i) * 0x1000, 0x1000};
    tracker.on_mmap(event);
  }
  CHECK(tracker.at(1)->regions().size() == 1'000'000);
  CHECK(tracker.at(1, 500'000)->regions().size() == 500'000);
}

}  // namespace perfmap
