// SPDX-License-Identifier: MIT
// Thread safety of modules, caches and trackers, as the headers promise it. For TSan.

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

/// Paths of the files that this process has mapped for execution.
std::vector<std::string> own_libraries() {
  ProcessTracker tracker;
  if (!tracker.import(::getpid())) return {};
  std::vector<std::string> paths;
  for (const Region& region : tracker.at(::getpid())->regions()) {
    if (region.access.execute && region.file->kind == RegionKind::file) {
      paths.push_back(region.file->name);
    }
  }
  return paths;
}

}  // namespace

TEST_CASE("several threads open, search and release modules of one cache", "[tsan]") {
  const std::vector<std::string> paths = own_libraries();
  REQUIRE(paths.size() >= 3);
  ModuleCache cache;
  std::atomic<int> wrong = 0;
  in_threads(8, [&](int number) {
    for (int round = 0; round < 20; ++round) {
      const std::string& path = paths[static_cast<std::size_t>(number + round) % paths.size()];
      const auto module = cache.open(path);
      if (!module) {
        ++wrong;
        continue;
      }
      const Address begin = (*module)->segments().front().range.begin;
      for (Address at = 0; at < 0x4000; at += 0x100) {
        const auto symbol = (*module)->find_symbol(begin + at);
        if (symbol && (*module)->demangled(*symbol).empty()) ++wrong;
      }
      const FileFacts& facts = (*module)->facts();
      static_cast<void>(cache.find({facts.device, facts.inode, facts.mtime_ns, facts.size}));
      static_cast<void>(cache.find_build_id((*module)->build_id()));
      if (round % 5 == number % 5) cache.trim(0);
      static_cast<void>(cache.statistics());
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("trackers in several threads open their modules through one cache", "[tsan]") {
  ModuleCache cache;
  const auto open = open_through(cache);
  std::vector<std::vector<const Module*>> seen(4);
  in_threads(4, [&](int number) {
    ProcessTracker::Options options;
    options.open_module = open;
    ProcessTracker tracker(options);
    if (!tracker.import(::getpid())) return;
    for (const Region& region : tracker.at(::getpid())->regions()) {
      if (!region.access.execute || !region.file->is_file()) continue;
      const auto module = tracker.module_of(::getpid(), region);
      seen[static_cast<std::size_t>(number)].push_back(module ? module->get() : nullptr);
    }
  });
  CHECK(!seen[0].empty());
  for (const auto& modules : seen) CHECK(modules == seen[0]);
  CHECK(cache.statistics().modules <= seen[0].size());
}

TEST_CASE("several threads read address spaces while the tracker changes", "[tsan]") {
  constexpr pid_t kPid = 42;
  constexpr Address kBase = 0x10000;
  constexpr std::uint64_t kPage = 0x1000;
  ProcessTracker tracker;
  std::mutex mutex;  // for `latest`; only one thread uses the tracker
  std::shared_ptr<const AddressSpace> latest = std::make_shared<AddressSpace>();
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  in_threads(5, [&](int number) {
    if (number == 0) {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        MmapEvent event;
        event.pid = kPid;
        event.time = i;
        event.range = {kBase + i % 50 * kPage, kPage};
        const std::string name = "/lib/" + std::to_string(i % 7) + ".so";
        event.name = name;
        tracker.on_mmap(event);
        if (i % 300 == 299) tracker.on_fork({kPid + 1, kPid + 1, kPid, i});
        if (i % 500 == 499) tracker.forget_before(i - 100);
        auto space = tracker.at(kPid);
        const std::lock_guard lock(mutex);
        latest = std::move(space);
      }
      done = true;
      return;
    }
    do {
      std::shared_ptr<const AddressSpace> space;
      {
        const std::lock_guard lock(mutex);
        space = latest;
      }
      for (const Region& region : space->regions()) {
        if (space->find(region.range.begin) != &region || region.file->name.empty()) ++wrong;
      }
    } while (!done);
  });
  CHECK(wrong == 0);
  CHECK(latest->regions().size() == 50);
}

TEST_CASE("several threads read one ProcSource", "[tsan]") {
  const auto process = ProcSource::open(::getpid());
  REQUIRE(process);
  REQUIRE(*process);
  std::atomic<int> wrong = 0;
  in_threads(4, [&](int) {
    for (int round = 0; round < 10; ++round) {
      MappedFiles files;
      const auto memory = (*process)->memory_map(files);
      if (!memory || !*memory || !(*process)->is_alive()) {
        ++wrong;
        continue;
      }
      for (const Region& region : (*memory)->regions) {
        if (!region.access.execute || region.file->kind != RegionKind::file) continue;
        const auto facts = (*process)->region_facts(region);
        if (!facts || !*facts || !(*facts)->is_regular) ++wrong;
      }
    }
  });
  CHECK(wrong == 0);
}

}  // namespace perfmap
