// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

/// A file whose bytes another thread changes through a shared mapping, as the owner of a map in
/// /tmp can, all the time until the end of its life. Its size stays.
class ChangingFile {
 public:
  /// The file's bytes are now those of one text, now those of the other, which is as long.
  ChangingFile(const std::string& name, std::string_view one, std::string_view other)
      : path_(scratch_.write(name, one)), size_(one.size()) {
    REQUIRE(one.size() == other.size());
    for (std::size_t i = 0; i < size_; ++i) {
      if (one[i] != other[i]) flips_.push_back({i, one[i], other[i]});
    }
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    REQUIRE(mapped != MAP_FAILED);
    bytes_ = static_cast<volatile char*>(mapped);
    thread_ = std::thread([this] {
      while (!stop_) {
        for (const Flip& flip : flips_) bytes_[flip.at] = flip.other;
        for (const Flip& flip : flips_) bytes_[flip.at] = flip.one;
      }
    });
  }
  ~ChangingFile() {
    stop_ = true;
    thread_.join();
    ::munmap(const_cast<char*>(bytes_), size_);
  }
  ChangingFile(const ChangingFile&) = delete;
  ChangingFile& operator=(const ChangingFile&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  struct Flip {
    std::size_t at;
    char one;
    char other;
  };

  Scratch scratch_;
  std::string path_;
  std::size_t size_;
  std::vector<Flip> flips_;
  volatile char* bytes_ = nullptr;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// Repeats the operation for a while: a race needs many tries.
inline void try_often(const std::function<void()>& operation) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::milliseconds(400); Clock::now() < end;) {
    operation();
  }
}

}  // namespace perfmap::test
