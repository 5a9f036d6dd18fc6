// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace perfmap::bench {

// The entry that all writers write.
constexpr std::uintptr_t kCode = 0x7f3529fcf759;
constexpr unsigned kCodeSize = 0xb;
constexpr const char* kCodeName = "py::handler_of_requests:/srv/app/server.py";

/// Calls work(COUNT) in this many threads, including this one, which share `entries`.
template <class Work>
void in_threads(int threads, int entries, Work work) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&] { work(entries / threads); });
  work(entries / threads);
  for (std::thread& other : others) other.join();
}

/// A perf map written like CPython does: a lock, fprintf(3) and fflush(3) for each entry.
class StdioMap {
 public:
  explicit StdioMap(const std::string& path);
  ~StdioMap() { std::fclose(file_); }
  StdioMap(const StdioMap&) = delete;
  StdioMap& operator=(const StdioMap&) = delete;

  void write(std::uintptr_t start, unsigned size, const char* name);

 private:
  std::mutex mutex_;
  std::FILE* file_;
};

void write_with_stdio(const std::string& path, int threads, int entries);

}  // namespace perfmap::bench
