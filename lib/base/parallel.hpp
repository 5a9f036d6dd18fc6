// SPDX-License-Identifier: MIT
// Work shared out between threads. Part of both libraries, hidden in each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace perfmap {

/// Calls `work(i)` once for each i below `count`, on up to `threads` threads, of which the caller's
/// is one. Which thread gets which i is undefined. If a thread cannot be made, the others do its
/// work. After an exception no further calls begin; the last one is rethrown when all have ended.
template <class Work>
void parallel_for(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_tasks = [&]() noexcept {
    try {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t wanted = std::min(threads, count);
    if (wanted > 1) others.reserve(wanted - 1);
    try {
      while (others.size() + 1 < wanted) others.emplace_back(take_tasks);
    } catch (const std::system_error&) {  // the system's limit of threads
    }
    take_tasks();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace perfmap
