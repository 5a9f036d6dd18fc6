// SPDX-License-Identifier: MIT
#include "base/parallel.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"

namespace perfmap::parallel_test {

TEST_CASE("parallel_for: each number is used exactly once, for any number of threads") {
  for (const std::size_t threads : {0, 1, 2, 7, 64}) {
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      for (const auto& one : calls) REQUIRE(one == 1);
    }
  }
}

TEST_CASE("parallel_for: an exception of any thread reaches the caller, and ends the work") {
  constexpr std::size_t kEndless = SIZE_MAX / 2;
  for (const std::size_t threads : {1, 4}) {
    const auto work = [](std::size_t i) {
      if (i == 3) throw std::bad_alloc();
    };
    CHECK_THROWS_AS(parallel_for(kEndless, threads, work), std::bad_alloc);
  }
}

TEST_CASE("parallel_for: without threads from the system, the caller does all the work") {
  const pid_t child = ::fork();
  if (child == 0) {
    // As another user, because the limit does not apply to root.
    if (::geteuid() == 0 && ::setuid(65533) != 0) ::_exit(2);
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(3);
    int calls = 0;
    bool one_thread = true;
    const auto caller = std::this_thread::get_id();
    parallel_for(100, 4, [&](std::size_t) {
      ::usleep(1000);  // long enough for others to take some, if there were any
      one_thread = one_thread && std::this_thread::get_id() == caller;
      if (one_thread) ++calls;
    });
    ::_exit(one_thread && calls == 100 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace perfmap::parallel_test
