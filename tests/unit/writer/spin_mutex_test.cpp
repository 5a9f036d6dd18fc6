// SPDX-License-Identifier: MIT
#include <chrono>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "writer/fork_safe_file.hpp"

namespace perfmap::spin_mutex_test {

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

}  // namespace perfmap::spin_mutex_test
