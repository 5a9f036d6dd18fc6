// SPDX-License-Identifier: MIT
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "writer/fork_safe_file.hpp"

namespace perfmap::spin_mutex_test {
namespace {

/// Whether the thread of this process waits for something.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") S ") != line.npos;
}

}  // namespace

TEST_CASE("SpinMutex: no thread enters beside another, and none is left asleep", "[writer]") {
  // More threads than processors, so that waiters sleep; short and long sections, so that they are
  // woken while others still look.
  constexpr int kThreads = 8, kRounds = 20'000;
  SpinMutex mutex;
  std::uint64_t count = 0;
  const auto work = [&](int number) {
    for (int i = 0; i < kRounds; ++i) {
      REQUIRE(mutex.lock());
      ++count;
      if ((i + number) % 2048 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      mutex.unlock();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  CHECK(count == std::uint64_t{kThreads} * kRounds);
}

TEST_CASE("SpinMutex: a thread that comes while another sleeps does not enter", "[writer]") {
  SpinMutex mutex;
  std::atomic<int> entered{0};
  const auto enter = [&](std::atomic<pid_t>& thread) {
    thread = ::gettid();
    if (!mutex.lock()) return;
    ++entered;
    mutex.unlock();
  };
  REQUIRE(mutex.lock());
  std::array<std::atomic<pid_t>, 3> ids{};
  std::vector<std::thread> threads;
  for (std::atomic<pid_t>& id : ids) {
    threads.emplace_back(enter, std::ref(id));
    // Between its id and its end, a thread sleeps only in the lock.
    while (entered == 0 && (id == 0 || !sleeps(id))) std::this_thread::yield();
  }
  CHECK(entered == 0);
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();
  CHECK(entered == 3);
}

}  // namespace perfmap::spin_mutex_test
